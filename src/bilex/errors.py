"""The one exception that users meet."""


class BilexError(Exception):
    """Something a user can put right, told in one sentence.

    The sentence names the file, line or word, says what is wrong and what to do. The command line
    prints it without a traceback and exits with code 2; in a program, catch this class.
    """
