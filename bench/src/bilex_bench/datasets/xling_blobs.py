"""The checksums of XLING's dictionaries.

Its makers publish no list of checksums, but git has one: every file of a commit has an id that is the SHA-1
of its length and content. These ids were computed from the copy that our figures were measured on; its files
agree in length with those of the commit below wherever that was looked up (six of 84).
"""

from __future__ import annotations

COMMIT = "88f037f567a1fb0cb75e5a923d512c57fdef3a10"

# By pair: the ids of the 2k test, the 1k and the 5k training dictionary.
BLOBS: dict[str, tuple[str, str, str]] = {
    "de-fi": (
        "06de00eeb7232a12462be4bde81b08f4d3c5893e",
        "bb3f349b00a3f3d4d8466f2c1b0f881ed220b5dd",
        "aec388ba8d37927d435715a3f665abd5d360e517",
    ),
    "de-fr": (
        "76a7f79c18b99fda40024daca057be0aae854ef5",
        "5999bd78cdf36a00348d526de9c7afaf169c0215",
        "1f6cf34af347f0754279c7d0e7957c1bd07efddc",
    ),
    "de-hr": (
        "c8bcbc17568998196a9c0194dade3a16d29673eb",
        "13c5bcf505d9532b3bc9c6a1170977dcbdac3e4a",
        "29f19d0682b0ce2d30093524eb54fa3bc5eb190b",
    ),
    "de-it": (
        "541d49571112df810dfc0392c486b49e1efd44cb",
        "8cea097a8d6c9a1126bd3e2d2aac8378c005baa2",
        "048975dbd026fea31314a4b67ecd87f0ed9d40fd",
    ),
    "de-ru": (
        "d70c7ed9d8bd06c30635100f71731094bee0ad1b",
        "fa86de7a607516d168390ae74fcd25fb60c6c234",
        "8be0ad849ad57832d821ec60caae722c0d10cfff",
    ),
    "de-tr": (
        "5b968add59360e381b608711534e706e2b03f4a3",
        "7830185170b1c50596242eba4877a52a725b5407",
        "5502ed751d5877d36fdd07a3ca0cc27e4f113375",
    ),
    "en-de": (
        "39cc3f91532c0e21cdb5961a97641beca9e41aa1",
        "52d7233e12b2a8098dd232b957b07712f92a95e5",
        "0aa966449083bc8bd589ef8546b46cb21e339f86",
    ),
    "en-fi": (
        "16c8f451c01f0dfd244ec2e511fbd13e02c6ff80",
        "bfac0396912113456e719f254c9571e5821d58c4",
        "3d6892d0e4d4e1fd007c6ca117417c616d84dae7",
    ),
    "en-fr": (
        "9dcab7ffda9d01ee30156acb028a417f46bce1b9",
        "e8b092cf777712446a2e65345737eb3f31947477",
        "90b854bcfa5ec23a81c9d3c08aa370c2591f1599",
    ),
    "en-hr": (
        "45363fb1441260b280119dfd2eb66dd1739ab990",
        "a51cefb161ea09fb20f17b8dd798d05a1d3305ba",
        "5c78331f8917ca9e7928c9d0f263ab0e19a13bd7",
    ),
    "en-it": (
        "625581bf5b28502af2acb4d7c8fdcfe794268c91",
        "9f14d00fd72f7c2030166508fcc8df5b3d51fe0c",
        "3fb21d02c8059cac90a38ed4ebf8197c880a63cb",
    ),
    "en-ru": (
        "19e8eae87538a7dceb804f0242c92bf31d5ca6f2",
        "3365a1a6231846a5ea9f57428e05e83d657a6b69",
        "b9de6312121b9d0ead9e4506ef6486c142c7a370",
    ),
    "en-tr": (
        "5f7507985f44a73efcb7bb4af561c9ce63530442",
        "d053cb11860304fba79636cce81ec099dd344f94",
        "e16b85e450a97ea420e8aa2d82f738f4f7cc7e1e",
    ),
    "fi-fr": (
        "9021bfafd440dc35c024dc7f48f1169fa28fea3e",
        "b92792dcb86cc04ee8d8adc93192f0d1d698c0ec",
        "314071f1ac91ead5439e599afa37de0f710d3e43",
    ),
    "fi-hr": (
        "2e761e3d907a15409e7108a9551a012b2d589104",
        "f7481889642e415770e6111a280912cea39a5391",
        "462118ed1cb6a0dfee54d8660c58edf1187cf2e5",
    ),
    "fi-it": (
        "457790f18d00c03ec8458ecd0c40ad4ff5a9c53a",
        "1c0b0b27f8ec0696a0685cf127105891eea7b9f4",
        "7cca6fdc8a8851f6e15203944a027b3f697ae1cd",
    ),
    "fi-ru": (
        "a7911dccafcb1007be5683260576c686a435a646",
        "38d375e27f071bbe83362c645e5a6c962e49d50f",
        "5cbacc39d68156f61f9e6cc6d4cc1adeff32641d",
    ),
    "hr-fr": (
        "ce8d279427fe41633623c564195607ec45213b3a",
        "13fa5137ad2395deb26993133635e5ac9011ee6f",
        "ba40b4f1b27e514e9acbc6d114e686e8df4040cf",
    ),
    "hr-it": (
        "0dec3246bfc03e1409e8968bda339d703efd3701",
        "111e87ad9d5f4bd9e42844bd8696cd5167b01c55",
        "7788d0499af72292c6539bfaf096608e8c13f471",
    ),
    "hr-ru": (
        "da0e0c50dd8b1a7997a436bf52a7e303c21aa868",
        "6a53adace1038eeedb86266c77173769a72ceca6",
        "4a4b44354b484e0a230608f583e5d6e584a074f7",
    ),
    "it-fr": (
        "67baabf96a49dc6ac61ac7ec25c22d22c892bf06",
        "560fc9f68e6c61d821d3dda69ecf72ec69e8f167",
        "710d43fd15a5e9998258d20d6a8a8f88c2d642ed",
    ),
    "ru-fr": (
        "e1dde9e378cb3cc319bf40c437d88ae64a8f5e37",
        "586233e02bd4bc147f8df9615519629e1ab99620",
        "c5c4ffe3637cb5290485e386e3906e8f35e977fa",
    ),
    "ru-it": (
        "9c1a3900f0c1fcaf1cf187329444a57b74e79186",
        "29a129e4dca0bcc19a2ebc25a74355faac51a638",
        "cd32d3cb002441dbcaed659a394f22de3f5a1df4",
    ),
    "tr-fi": (
        "25171df1cafbcf66faf27291ced4da8ed7b48855",
        "e2837abc1abb226c91f9e29422f9bcc18a9113b7",
        "adf23a82f487a2db5a3a994b975603cc635e3d9d",
    ),
    "tr-fr": (
        "2b7efe27283dc23469b4801613b9ad79c610ae49",
        "2d6a25cd12a69e810e215bbedcbb7ac453e39b3e",
        "07ea84739c6b789bc2e6b6a1abe8c40980e3e8f1",
    ),
    "tr-hr": (
        "d58cd94a1f9d3fbd5fcd553e74c3e6cf87e2def8",
        "a372f01765c1eb6144ba5882557b24d00f2bfab3",
        "7c6f01a0853b3d00e3f290c8609e05366ed4ff2a",
    ),
    "tr-it": (
        "74c189ae7a47de4be883516c31a4f9aa98490ecd",
        "153ef0864a067c1175261c2e46eca43696f0d624",
        "eed2c934aa838d249150111f1723c7725d3854a0",
    ),
    "tr-ru": (
        "38a1e29f71707a6427e108ea3d153ab2cfc86a7a",
        "e5272c646c6feed00213236c7a0a1ba004f440ec",
        "2df52e56313744f84702758ef393813a08580089",
    ),
}
