"""The programs: the HTTP application and the command line, with the routes and commands of all features."""
