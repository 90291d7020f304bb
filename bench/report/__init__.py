"""Parts of the benchmark page; bench/report.py puts them together."""
