"""One page that shows and explains all results, and one for a comparison. Needs neither torch nor Hydra.

statistics.py   tables of paired comparisons and of ranks
content.py      everything the page says, as plain data
page.py         writes the page and the files beside it
comparison.py   the page of `compare`
page.html.j2, comparison.html.j2, parts.html.j2, style.css, script.js   how they look
"""
