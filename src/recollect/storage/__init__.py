"""Past runs in Optuna storages and in files."""
