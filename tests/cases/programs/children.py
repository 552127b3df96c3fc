# SPDX-License-Identifier: Apache-2.0
"""Each word of the command line in a process of its own, one after the other."""
import os
import sys


def one_for_each_word(run):
    """`run` gets the word and does not return: it ends its process."""
    for word in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            run(word)
        os.waitpid(child, 0)
