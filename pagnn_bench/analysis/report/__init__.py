"""One page that shows and explains all results. Needs neither torch nor Hydra.

statistics.py   tables of paired comparisons and of ranks
content.py      everything the page says, as plain data
page.py         writes the page and the files beside it
page.html.j2, style.css, script.js   what it looks like
"""
