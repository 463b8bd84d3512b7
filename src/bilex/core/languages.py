"""Languages by code and name, so that tables can say "English" where they said "source".

The codes are those of ISO 639-1 and those that fastText's 157 languages are published under.
"""

from __future__ import annotations

import re
from pathlib import Path

# code, English name, and further names that a column of a spreadsheet may have
_TABLE = """
af Afrikaans|als Alemannic|am Amharic|an Aragonese|ar Arabic,العربية|arz Egyptian Arabic|as Assamese
ast Asturian|az Azerbaijani|azb South Azerbaijani|ba Bashkir|bar Bavarian|bcl Central Bikol
be Belarusian,беларуская|bg Bulgarian,български|bh Bihari|bn Bengali,Bangla|bo Tibetan
bpy Bishnupriya Manipuri|br Breton|bs Bosnian,bosanski|ca Catalan,català|ce Chechen|ceb Cebuano
ckb Central Kurdish,Sorani|co Corsican|cs Czech,čeština,česky|cv Chuvash|cy Welsh,Cymraeg|da Danish,dansk
de German,Deutsch|diq Zazaki|dv Divehi|el Greek,ελληνικά|eml Emiliano-Romagnol|en English|eo Esperanto
es Spanish,español,castellano|et Estonian,eesti|eu Basque,euskara|fa Persian,Farsi|fi Finnish,suomi
fo Faroese|fr French,français,francais|frr North Frisian|fy West Frisian,Frisian|ga Irish,Gaeilge
gd Scottish Gaelic|gl Galician,galego|gom Goan Konkani,Konkani|gu Gujarati|gv Manx|ha Hausa
he Hebrew,עברית|hi Hindi,हिन्दी|hif Fiji Hindi|hr Croatian,hrvatski|hsb Upper Sorbian
ht Haitian,Haitian Creole|hu Hungarian,magyar|hy Armenian|ia Interlingua|id Indonesian,Bahasa Indonesia
ig Igbo|ilo Ilokano|io Ido|is Icelandic,íslenska|it Italian,italiano|ja Japanese,日本語|jv Javanese
ka Georgian|kk Kazakh|kl Greenlandic|km Khmer|kn Kannada|ko Korean,한국어|ku Kurdish|kv Komi|kw Cornish
ky Kyrgyz|la Latin|lb Luxembourgish|li Limburgish|lmo Lombard|ln Lingala|lo Lao|lt Lithuanian,lietuvių
lv Latvian,latviešu|mai Maithili|mg Malagasy|mhr Meadow Mari|mi Maori,Māori|min Minangkabau
mk Macedonian,македонски|ml Malayalam|mn Mongolian|mr Marathi|mrj Hill Mari|ms Malay,Bahasa Melayu
mt Maltese|mwl Mirandese|my Burmese|myv Erzya|mzn Mazandarani|nah Nahuatl|nap Neapolitan
nds Low German,Low Saxon|ne Nepali|new Newar|nl Dutch,Nederlands|nn Norwegian Nynorsk,Nynorsk
no Norwegian,norsk,bokmål|ny Chichewa|oc Occitan|or Odia,Oriya|os Ossetian|pa Punjabi,Panjabi
pam Kapampangan|pfl Palatine German|pl Polish,polski|pms Piedmontese|pnb Western Punjabi|ps Pashto
pt Portuguese,português|qu Quechua|rm Romansh|ro Romanian,română|ru Russian,русский|rue Rusyn
rw Kinyarwanda|sa Sanskrit|sah Yakut|sc Sardinian|scn Sicilian|sco Scots|sd Sindhi|se Northern Sami
sh Serbo-Croatian|si Sinhala|sk Slovak,slovenčina|sl Slovenian,Slovene,slovenščina|sm Samoan|sn Shona
so Somali|sq Albanian,shqip|sr Serbian,српски|st Sotho|su Sundanese|sv Swedish,svenska
sw Swahili,Kiswahili|ta Tamil|te Telugu|tg Tajik|th Thai,ไทย|ti Tigrinya|tk Turkmen|tl Tagalog,Filipino
tn Tswana|to Tongan|tr Turkish,Türkçe|ts Tsonga|tt Tatar|ug Uyghur|uk Ukrainian,українська|ur Urdu
uz Uzbek|vec Venetian|vi Vietnamese,Tiếng Việt|vls West Flemish|vo Volapük|wa Walloon|war Waray|wo Wolof
xh Xhosa|xmf Mingrelian|yi Yiddish|yo Yoruba|yue Cantonese|zea Zeelandic|zh Chinese,中文|zu Zulu
"""
# Codes that are English words too: in a file's name they count only where nothing else can be meant.
_WORDS = "am an as be ha he hi id in io is it la li me mi my new no or pa pam so to war wa min bar"
_ALSO_WORDS = frozenset(_WORDS.split())
# The codes of three letters (ISO 639-2 and 639-3) that FreeDict, Apertium and others use.
_THREE_LETTERS = """
afr-af ara-ar arg-an bel-be ben-bn bre-br bul-bg cat-ca ces-cs cze-cs cym-cy wel-cy dan-da deu-de ger-de
ell-el gre-el eng-en epo-eo est-et eus-eu baq-eu fao-fo fas-fa per-fa fin-fi fra-fr fre-fr gla-gd gle-ga
glg-gl heb-he hin-hi hrv-hr hun-hu hye-hy arm-hy ind-id isl-is ice-is ita-it jpn-ja kat-ka geo-ka kaz-kk
kor-ko kur-ku lat-la lav-lv lit-lt ltz-lb mkd-mk mac-mk mlt-mt msa-ms may-ms nld-nl dut-nl nno-nn nob-nb
nor-no oci-oc pol-pl por-pt ron-ro rum-ro rus-ru san-sa slk-sk slo-sk slv-sl sme-se spa-es sqi-sq alb-sq
srd-sc srp-sr swa-sw swe-sv swh-sw tam-ta tat-tt tel-te tha-th tur-tr uig-ug ukr-uk urd-ur uzb-uz vie-vi
yid-yi zho-zh chi-zh
"""
_TWO_LETTERS = dict(code.split("-") for code in _THREE_LETTERS.split())
_PUBLISHED = re.compile(r"(?:wiki|cc|wiki\.multi|crawl)\.([a-z]{2,3})(?:\.\d+)?(?:\.|$)")
_SUFFIXES = re.compile(r"(\.(vec|txt|bin|npy|gz|bz2|xz))+$")
_TOKENS = re.compile(r"[^\W\d_]+")

_NAMES: dict[str, str] = {}
_CODES: dict[str, str] = {}
for _entry in _TABLE.replace("\n", "|").split("|"):
    if _entry:
        _code, _, _names = _entry.partition(" ")
        _NAMES[_code] = _names.split(",")[0]
        _CODES.update({_name.casefold(): _code for _name in _names.split(",")})


def language_name(code: str) -> str:
    """The English name of a language, or what was given if the code is not known."""
    return _NAMES.get(code.lower(), code)


def short_code(code: str) -> str:
    """A language's code in two letters where it has one: "en" for "eng" and "en-GB"."""
    main = code.lower().replace("_", "-").split("-")[0]
    return _TWO_LETTERS.get(main, main)


def matching_codes(marked: str, wanted: str) -> bool:
    """Whether a word marked "en-GB" is of the language "en"."""
    marked, wanted = marked.lower().replace("_", "-"), wanted.lower().replace("_", "-")
    return marked == wanted or marked.split("-")[0] == wanted or short_code(marked) == short_code(wanted)


def is_code(text: str) -> bool:
    """Whether a text is the code of a known language, such as "fi"."""
    return text.strip().casefold() in _NAMES


def code_of(text: str) -> str | None:
    """The code of a language that is given by its code or by a name, such as "Finnish" or "suomi"."""
    wanted = text.strip().casefold()
    return wanted if wanted in _NAMES else _CODES.get(wanted)


def is_language_name(text: str) -> bool:
    """Whether a text is a name, not only a code, of a known language."""
    return text.strip().casefold() in _CODES


def language_of_file(path: str | Path) -> str | None:
    """The code of the language that a file's name says, as `wiki.fi.vec` or `finnish-vectors.txt` do.

    None where the name says nothing or is open to doubt, as `my-vectors.vec` is.
    """
    name = Path(path).name.casefold()
    published = _PUBLISHED.match(name)
    if published and is_code(published[1]):
        return published[1]
    stem = name.split(".")[0]
    if is_code(stem):
        return stem
    tokens = _TOKENS.findall(_SUFFIXES.sub("", name))
    named = [_CODES[token] for token in tokens if token in _CODES]
    coded = [token for token in tokens if token in _NAMES and token not in _ALSO_WORDS]
    found = dict.fromkeys(named or coded)
    return next(iter(found)) if len(found) == 1 else None


def two_languages(*sides: tuple[str | None, str | Path | None]) -> tuple[str | None, str | None]:
    """The codes of two languages: those stated, as codes or names, else what the names of their files say.

    None for one that is not known, and for both if they would be the same.
    """
    source, target = (
        (stated and (code_of(stated) or stated))
        if file is None or stated is not None
        else language_of_file(file)
        for stated, file in sides
    )
    return (None, None) if source == target else (source, target)
