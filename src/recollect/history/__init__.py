"""What has been tried: trials and runs."""
