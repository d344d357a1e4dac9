"""The pages of a memory, served on this machine and kept up to date while runs go on; nothing is ever written.

opening   a memory, opened for reading only
marks     what tells whether anything has changed
addresses which page is where
shelf     pages that were made, kept until something changes
live      a page made able to renew itself
gate      who is let in, and what is told to browsers
site      the pages as an application of Starlette
serving   the server
"""
