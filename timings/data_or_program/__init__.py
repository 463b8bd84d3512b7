"""Where the figures differ from the paper's Table 1: is it the data or our program?"""
