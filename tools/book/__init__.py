"""What the site has besides the pages of docs/: made when it is built, of the code and of bench/results."""
