"""Evidence on the result of a full run, from a random part of its items.

The items of a benchmark are requested in a random order. Given the answers so far, an *e-process*
against a set of possible results is a nonnegative process that starts at 1 and is a supermartingale
over the random order if the result of the full run is in that set. By Ville's inequality (Ville
1939, "Etude critique de la notion de collectif") it ever reaches 1/alpha with probability at most
alpha, at whatever time and for whatever reason one stops. All functions return natural logarithms:
``inf`` if the answers exclude the set, ``-inf`` if they exclude its complement.

`counts`: numbers of right answers. `means`: means of scores in [0, 1], weighted or not. `paired`:
pairs of answers of two runs. `operating`: exact error probabilities and expected numbers of items.
"""
