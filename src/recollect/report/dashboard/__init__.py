"""The pages of a memory, served on this machine and kept up to date while runs continue; nothing is ever written.

read_only   a memory, opened for reading only, and what tells whether anything has changed
app         the pages as a Starlette application: their URLs, how they renew themselves, and how they are cached
connections a limited number of connections, each with a limited time to send a request
server      the server, who gets access, and the security headers of every response
"""
