-- tests/golden/lives.lua - see lives_of_schedules.lua, which wrote this file.
return {
  ["1f1b 1 as written"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["1f1b 1 always"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["1f1b 1 except_last"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["1f1b 2 as written"] =
    "fb6a97b6 455ed25b 9ea4d09e 4cac6ebb f13c7f67 716ec4a4 71cba7cc 8c87841b \z
    89d616b4 633d46f5 8fe057c9 535f2e8a d021bb28 b87911df cbb1b3b1 e8c532fe",
  ["1f1b 2 always"] =
    "fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 \z
    fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6",
  ["1f1b 2 except_last"] =
    "fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 \z
    fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6",
  ["1f1b 3 as written"] =
    "12191cd9 cb6f50e5 f23942bd 75460cb0 7b6aee12 d3ad0f79 da5e90e9 189ccf48 \z
    98eb9936 f7a848dc efbb5f0c 0d31991f 61c20a97 a5e219f6 ff25b3b0 f339704e",
  ["1f1b 3 always"] =
    "12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 \z
    12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9",
  ["1f1b 3 except_last"] =
    "12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 \z
    12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9",
  ["1f1b 4 as written"] =
    "43ab9639 14433335 3f043775 8102acef 396f9036 a1a5fb85 3c851f03 5fc379c1 \z
    5b9e3723 72415afa 77c2b4a9 606f6ed5 df355e24 e90b8928 e2e40ac3 7204c54d",
  ["1f1b 4 always"] =
    "43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 \z
    43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639",
  ["1f1b 4 except_last"] =
    "43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 \z
    43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639",
  ["1f1b 8 as written"] =
    "a4d4ab6e b67920b9 649ac2e0 eb7bcb26 f68b0f5d aff5c6ed 30450eb6 a29be96a \z
    f0acf891 f6670cf2 5a294b33 2755a2ff c6680dca 151054fe d81e4d1b 04ae0132",
  ["1f1b 8 always"] =
    "a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e \z
    a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e",
  ["1f1b 8 except_last"] =
    "a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e \z
    a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e",
  ["chimera 1 as written"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["chimera 1 always"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["chimera 1 except_last"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["chimera 2 as written"] =
    "fb6a97b6 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 \z
    54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36",
  ["chimera 2 always"] =
    "fb6a97b6 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a \z
    2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a",
  ["chimera 2 except_last"] =
    "fb6a97b6 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 \z
    54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36",
  ["chimera 3 as written"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["chimera 3 always"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["chimera 3 except_last"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["chimera 4 as written"] =
    "43ab9639 779b1cda 6c3cccf1 147bca2f 850d4825 dd8dfd68 7af753a2 3ed4562f \z
    31f59958 0e072f0d 6a8e6e0d fdca6fec 8e7df610 45dadef1 6ec16acd 90ce2362",
  ["chimera 4 always"] =
    "43ab9639 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c \z
    91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c",
  ["chimera 4 except_last"] =
    "43ab9639 779b1cda d643cc70 91aaba2c 91aaba2c 1b2fb736 1b2fb736 91aaba2c \z
    91aaba2c 1b2fb736 1b2fb736 91aaba2c 91aaba2c 1b2fb736 1b2fb736 91aaba2c",
  ["chimera 8 as written"] =
    "a4d4ab6e 50982b6e 033de25d ee47bf8d ba20dd31 ccd7ce10 ff96f3ae ce625299 \z
    aa497ec6 be180621 48236406 717c960d e44865d4 9c12a76d e03255ad 975f9123",
  ["chimera 8 always"] =
    "a4d4ab6e 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 \z
    7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540",
  ["chimera 8 except_last"] =
    "a4d4ab6e 50982b6e 324115d0 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 \z
    7f80b540 c6e55072 c6e55072 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540",
  ["dualpipe 1 as written"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["dualpipe 1 always"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["dualpipe 1 except_last"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["dualpipe 2 as written"] =
    "fb6a97b6 54f28f36 d82aca46 285bf125 8cb05af7 e9c2e70e de9f3db0 e118d22d \z
    9efc07de ea071485 06d00e01 aa3f597a dd04eaf6 7959eb43 ebc4861d b594d774",
  ["dualpipe 2 always"] =
    "fb6a97b6 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a \z
    2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a 2a636c7a",
  ["dualpipe 2 except_last"] =
    "fb6a97b6 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 \z
    54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36 54f28f36",
  ["dualpipe 3 as written"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["dualpipe 3 always"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["dualpipe 3 except_last"] =
    "- - - - - - - - \z
    - - - - - - - -",
  ["dualpipe 4 as written"] =
    "43ab9639 779b1cda 6c3cccf1 147bca2f 1d1f1939 33edae96 b7792ebd acd2da01 \z
    0d0961eb 547724f7 3a6f5f6d d9b00152 7207d5ec c373a844 ae099f56 49ac44a5",
  ["dualpipe 4 always"] =
    "43ab9639 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c 91aaba2c a10ae0d2 \z
    91aaba2c a10ae0d2 91aaba2c a10ae0d2 91aaba2c a10ae0d2 91aaba2c a10ae0d2",
  ["dualpipe 4 except_last"] =
    "43ab9639 779b1cda d643cc70 91aaba2c 7f91b10a f06b848c f06b848c 4cf372ae \z
    f06b848c 4cf372ae f06b848c 4cf372ae f06b848c 4cf372ae f06b848c 4cf372ae",
  ["dualpipe 8 as written"] =
    "a4d4ab6e 50982b6e 033de25d ee47bf8d ba20dd31 ccd7ce10 ff96f3ae ce625299 \z
    c4a515b9 afc3a373 b6b8eb09 86b4b940 19fb6fc3 64c830d8 f015563b 52474d9b",
  ["dualpipe 8 always"] =
    "a4d4ab6e 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 \z
    7f80b540 7f80b540 7f80b540 7f80b540 ddcf28b4 d8e84854 810bca7e dd00dcd4",
  ["dualpipe 8 except_last"] =
    "a4d4ab6e 50982b6e 324115d0 7f80b540 7f80b540 7f80b540 7f80b540 7f80b540 \z
    c89942d2 3c8eb888 3c8eb888 3c8eb888 13d4477c ba72a690 5ceb33da 6d401098",
  ["dualpipev 1 as written"] =
    "009ef3f8 d143ac37 8ecb82a4 c3a9d787 3bb18c23 5a401702 c423abfa afaf35d7 \z
    a8dbb972 954928f9 c385050d f1cdcb00 e6a160e6 deac722b dcdb4225 e0277704",
  ["dualpipev 1 always"] =
    "8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e \z
    8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e",
  ["dualpipev 1 except_last"] =
    "009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 \z
    009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8",
  ["dualpipev 2 as written"] =
    "21bec19c 3282e7f1 bbd4ef90 0e6e176b 77fa664a 009416b5 67e0093f 57eb1b39 \z
    7caebc5f 55e38116 044f4339 0cec037d ba8e852c 743ac590 9fd668a7 4431d075",
  ["dualpipev 2 always"] =
    "823af99b 823af99b 823af99b 3b30daae 3b30daae 3b30daae 3b30daae 3b30daae \z
    3b30daae 3b30daae 3b30daae 3b30daae 3b30daae 3b30daae 3b30daae 3b30daae",
  ["dualpipev 2 except_last"] =
    "21bec19c 823af99b a5659e7d 7aebfa20 7aebfa20 7aebfa20 7aebfa20 7aebfa20 \z
    7aebfa20 7aebfa20 7aebfa20 7aebfa20 7aebfa20 7aebfa20 7aebfa20 7aebfa20",
  ["dualpipev 3 as written"] =
    "cf9cb416 c5cf018d e5371ffd f732062c 3fba1700 4002e4cc 7279dde5 57bcbac2 \z
    460e2eb4 9c7a126d 03e4d32f 50f750d1 465e24e3 63f4a15a 5423edde 2302a619",
  ["dualpipev 3 always"] =
    "25afd226 25afd226 25afd226 25afd226 25afd226 acdad8c0 acdad8c0 acdad8c0 \z
    acdad8c0 acdad8c0 acdad8c0 acdad8c0 acdad8c0 acdad8c0 acdad8c0 acdad8c0",
  ["dualpipev 3 except_last"] =
    "cf9cb416 25afd226 25afd226 da132bb0 da132bb0 e09b236e e09b236e e09b236e \z
    e09b236e e09b236e e09b236e e09b236e e09b236e e09b236e e09b236e e09b236e",
  ["dualpipev 4 as written"] =
    "38a1e5ee 81a1d9ed 87f97840 30c4b1ac f70c0d7b 9ad0d410 3162e9db c859917c \z
    c2a4e63f 3ebcdf54 9533adb1 25be652d 36a7ca7c cffcb680 7ef33609 7958bc64",
  ["dualpipev 4 always"] =
    "dc2c5a6b dc2c5a6b dc2c5a6b dc2c5a6b dc2c5a6b dc2c5a6b 10e12160 a48dcb54 \z
    a48dcb54 a48dcb54 a48dcb54 a48dcb54 a48dcb54 a48dcb54 a48dcb54 a48dcb54",
  ["dualpipev 4 except_last"] =
    "38a1e5ee dc2c5a6b dc2c5a6b dc2c5a6b e6c21935 e6c21935 77e0a6ee c53b920a \z
    c53b920a c53b920a c53b920a c53b920a c53b920a c53b920a c53b920a c53b920a",
  ["dualpipev 8 as written"] =
    "8dfd7a4e a7ac3a96 22294eb9 d3fb3866 b0a77c50 293d1ff1 8c09fd2d 96ae9b85 \z
    9ccf4d1b 81fc43e3 d8780fef 43f05de5 8fd399a7 ea6c6a87 45789571 7ab25728",
  ["dualpipev 8 always"] =
    "1bcd8840 1bcd8840 1bcd8840 1bcd8840 1bcd8840 1bcd8840 1bcd8840 1bcd8840 \z
    1bcd8840 1bcd8840 f9caee98 f1d7e4e4 3dee1200 4d9132db 701e5237 eee1bf8c",
  ["dualpipev 8 except_last"] =
    "8dfd7a4e 1bcd8840 1bcd8840 1bcd8840 1bcd8840 1bcd8840 1bcd8840 1bcd8840 \z
    50ead4ad 50ead4ad 21b9894d 70e25a65 2431b663 55e87340 07a3229e 422ab603",
  ["gpipe 1 as written"] =
    "6096bf29 d97a48c2 e38bca3f aac6b8fa 3bf7d2a3 026482d0 b8a165a0 81620c14 \z
    9f93a792 11eceefe e3aa167b 807bae18 72916e20 40fcfb3e 749db10d 245e66c2",
  ["gpipe 1 always"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["gpipe 1 except_last"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["gpipe 2 as written"] =
    "fb6a97b6 200ddd3e 7ec9745f 7df6d28f 60ea3bd8 d1ba0184 c7dd2ea2 5f8c7ddb \z
    4bc5d36a 2a9c3a10 0c208aa6 62802e20 a2ddc536 dc64639a d82ef9c0 471febda",
  ["gpipe 2 always"] =
    "fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 \z
    fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6",
  ["gpipe 2 except_last"] =
    "fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 \z
    fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6",
  ["gpipe 3 as written"] =
    "12191cd9 719bce1d 766f209e 9bdbae5b c591cf1d 79b797e2 b03b9f97 474a9bd0 \z
    bf6a8bf0 414eca50 f6a8352a 543283e4 e0a9e50f 48b9baa6 cbcf2ea8 5acd6411",
  ["gpipe 3 always"] =
    "12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 \z
    12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9",
  ["gpipe 3 except_last"] =
    "12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 \z
    12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9",
  ["gpipe 4 as written"] =
    "43ab9639 1d8f870d edad5eee 99750b34 9c1c24fe a1558189 cd9e5a94 e07a75c2 \z
    41eb80d7 b129177f 0ec67add 9cdc5b87 e4adcd28 6bbe49e6 1784a52e 6201be00",
  ["gpipe 4 always"] =
    "43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 \z
    43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639",
  ["gpipe 4 except_last"] =
    "43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 \z
    43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639",
  ["gpipe 8 as written"] =
    "a4d4ab6e 48ec0785 1081a219 caa5aef8 611a780d f64472d0 7de798be 67f9c9e8 \z
    4d788350 daa624a0 112ff542 02aa2535 cd8d7e59 2af5c126 4a7b8588 0b5ee146",
  ["gpipe 8 always"] =
    "a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e \z
    a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e",
  ["gpipe 8 except_last"] =
    "a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e \z
    a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e",
  ["interleaved_1f1b 1 as written"] =
    "009ef3f8 8588539d fec26d98 69cace51 dfdfde51 647637a2 98e78a26 8d58f4e1 \z
    a2f00726 19f41cd9 b0720179 e552fd78 3bf2754a e7fe01ab f78cf68d dba6968e",
  ["interleaved_1f1b 1 always"] =
    "8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e \z
    8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e",
  ["interleaved_1f1b 1 except_last"] =
    "009ef3f8 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e \z
    8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e",
  ["interleaved_1f1b 2 as written"] =
    "384dce6d 48c46be0 75e2a58e f75985ee 19fa8bad 497864a8 537e388f a4c14ecc \z
    354fb6d3 d78d06b1 c3e283a7 d0aae798 e8e11655 7ea47b8f 09d901e6 e680e8a4",
  ["interleaved_1f1b 2 always"] =
    "e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 \z
    e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5",
  ["interleaved_1f1b 2 except_last"] =
    "384dce6d e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 \z
    e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5 e5523ee5",
  ["interleaved_1f1b 3 as written"] =
    "6fc0618f 9dbe8034 263a8210 12d443ba 76496235 4e364ec6 8dc717aa 93ed508b \z
    a69b5069 0991469c 8cab7c6a 7ecf80f4 ed5ed0b3 350c5fba e746658b db19ffa3",
  ["interleaved_1f1b 3 always"] =
    "de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e \z
    de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e",
  ["interleaved_1f1b 3 except_last"] =
    "6fc0618f de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e \z
    de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e de264c8e",
  ["interleaved_1f1b 4 as written"] =
    "a2d787ba 762744c7 839ca4a5 fae9c23f a500fee6 ae729fc5 9750af34 a6b44536 \z
    77907398 9dfd0824 dee3891b e8cf05cb 2c2f58c1 14e00c29 7da456d1 854971e9",
  ["interleaved_1f1b 4 always"] =
    "ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 \z
    ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5",
  ["interleaved_1f1b 4 except_last"] =
    "a2d787ba ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 \z
    ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5 ecb5a9d5",
  ["interleaved_1f1b 8 as written"] =
    "afc5a8d5 612bda6f 18a7847e d29fa110 adf72012 9b111037 ddeb74d9 785bb9cb \z
    dfb57a6c a33fe845 6dff90ca b8273f54 c870ca43 987f981e 938ade42 0b22b584",
  ["interleaved_1f1b 8 always"] =
    "5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc \z
    5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc",
  ["interleaved_1f1b 8 except_last"] =
    "afc5a8d5 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc \z
    5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc 5e59accc",
  ["interleaved_zero_bubble 1 as written"] =
    "009ef3f8 8588539d fec26d98 69cace51 dfdfde51 647637a2 98e78a26 8d58f4e1 \z
    a2f00726 19f41cd9 b0720179 e552fd78 3bf2754a e7fe01ab f78cf68d dba6968e",
  ["interleaved_zero_bubble 1 always"] =
    "8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e \z
    8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e",
  ["interleaved_zero_bubble 1 except_last"] =
    "009ef3f8 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e \z
    8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e",
  ["interleaved_zero_bubble 2 as written"] =
    "384dce6d f0c1c338 b337e98c 5e3b6afe d0285637 321549e0 61de14c7 3578bcfc \z
    db5d1549 0c2b5f4e 9e952d57 5746b724 0da05e25 143e5822 390117f9 c35e0a7a",
  ["interleaved_zero_bubble 2 always"] =
    "c7149f89 3298e914 7a1fc4fe e951e824 75354174 cf89c44a 8c69774a 2dbfdc74 \z
    1af94d0e eafcf8a4 595ff1a0 9ec2610a 0200ce04 96541de8 f1f67784 675a066c",
  ["interleaved_zero_bubble 2 except_last"] =
    "384dce6d 3298e914 7a1fc4fe e951e824 75354174 cf89c44a 8c69774a 2dbfdc74 \z
    1af94d0e eafcf8a4 595ff1a0 9ec2610a 0200ce04 96541de8 f1f67784 675a066c",
  ["interleaved_zero_bubble 3 as written"] =
    "6fc0618f b3ee997a bd8ac574 856f9a37 e933f264 4901d5f0 9a3b2e5d 3bd04118 \z
    a54c1912 ba12a6e1 cea5020a 8231da84 54f54910 80e69bad 68449f7d 7b03d577",
  ["interleaved_zero_bubble 3 always"] =
    "e00f94dc 40572138 5604179b f3c5aa01 a9ecff4f ee009e4f aa00b5cf 4c21dccf \z
    5d9402af 5c9083a7 34b3821f dac7966f e5ab44bf ae8273bf 07c4137d e7133e07",
  ["interleaved_zero_bubble 3 except_last"] =
    "6fc0618f 40572138 5604179b f3c5aa01 a9ecff4f ee009e4f aa00b5cf 4c21dccf \z
    5d9402af 5c9083a7 34b3821f dac7966f e5ab44bf ae8273bf 07c4137d e7133e07",
  ["interleaved_zero_bubble 4 as written"] =
    "a2d787ba c1f45f2e df08020e ee1c31c1 ba7d47f1 cc5fce5c a129fe96 f4b24931 \z
    f8191988 c5dc15d1 f544bc0e bf6c0359 b942f644 06b1da2c d29f4225 afa117cd",
  ["interleaved_zero_bubble 4 always"] =
    "b7980e28 446698b4 0f16c677 f9132165 e0f01109 65e84f45 6df40e69 f02b8e15 \z
    600ad1c7 1985eadf 7dc71b1f 3ecc662d fc886589 974677cd 871adf71 45271925",
  ["interleaved_zero_bubble 4 except_last"] =
    "a2d787ba 446698b4 0f16c677 f9132165 e0f01109 65e84f45 6df40e69 f02b8e15 \z
    600ad1c7 1985eadf 7dc71b1f 3ecc662d fc886589 974677cd 871adf71 45271925",
  ["interleaved_zero_bubble 8 as written"] =
    "afc5a8d5 ef186087 d3bad68c 97efe1cc 41263f0e 9cb78371 2158785e 12674a0d \z
    645c9483 0320adef f1e11512 a1dd89c8 0375a15c 5d006036 f3449c95 cc0e4865",
  ["interleaved_zero_bubble 8 always"] =
    "254648a6 3842954c fce8ea73 4a50ba9d f8aad5b6 d9390ab0 36b2ef39 86342e6a \z
    e5b5924c 46e1a8a6 dcb136c4 206f6d10 38bdfb4a 85db418a ac1d0b1c 5bc6c924",
  ["interleaved_zero_bubble 8 except_last"] =
    "afc5a8d5 3842954c fce8ea73 4a50ba9d f8aad5b6 d9390ab0 36b2ef39 86342e6a \z
    e5b5924c 46e1a8a6 dcb136c4 206f6d10 38bdfb4a 85db418a ac1d0b1c 5bc6c924",
  ["looped_bfs 1 as written"] =
    "009ef3f8 7656a4c8 caaeeb30 acc912bc c667fcaa 09ae91be c8813a79 7194d8ac \z
    3c200106 7b34f0d6 548481f8 cc3d3d93 f019b4e8 191c4c83 a9fd541a bd3492d9",
  ["looped_bfs 1 always"] =
    "8d7e311e de711ed9 0cf494fa c0ad6478 710dff1b 7cb17e56 c78fc17f 6c874118 \z
    84b4b0da 7b1ed0a7 fb78b173 a5e42bd8 64d5a0d7 facbddf1 8fa34816 b408f6bf",
  ["looped_bfs 1 except_last"] =
    "009ef3f8 639c57fb 0111b6bc 402593f2 aab62cc9 97bbbb98 f7cde8b1 0276bc83 \z
    5a01ac73 7e2565ca 45342cfb 55e3d528 b516b817 170a742d a4f1f2da 6865f367",
  ["looped_bfs 2 as written"] =
    "384dce6d 50203bbd 0cfe25b0 74f378ba cd3c6326 dd927628 8f758ae4 0790f0a3 \z
    c51b84fc 9694b51f 9e623992 b37d84b3 38f0faa1 e0160b10 33abf3dd f7be40fa",
  ["looped_bfs 2 always"] =
    "e5523ee5 caba20a3 5846d509 333279eb e16d4250 2de0fd00 c06e6a31 69eeb6eb \z
    773cfc4c f54f7b23 f0aa02bb 15ae9c2b 590be783 41deff6b 53e83c0d 4893fc6b",
  ["looped_bfs 2 except_last"] =
    "384dce6d 4b712083 f38123ec 535d33e0 b87ec2fd 5059d433 e579e104 b3f285fb \z
    98012803 85486b7f fb5f9823 aaabeabf b3a8c29d 14194647 a58e7f99 22551c27",
  ["looped_bfs 3 as written"] =
    "6fc0618f 6900f3a4 8edf951f 4b5957e1 f39b6a0a 3cf74d13 907cb644 f1eb54b2 \z
    696c22bc c1c9c9ef 34aeeef7 f021ab16 9f2a8d60 9b012315 f7ed8acb ac9e0c09",
  ["looped_bfs 3 always"] =
    "de264c8e ea14dfa8 194b872a 7b84ae13 556b6680 cceab2df 0c1e08ca 5640ef18 \z
    8d03d0f9 e019ebd7 c71e93ec 79293c12 3521f2a1 7c2d6fd2 304b5cf9 d6a70acf",
  ["looped_bfs 3 except_last"] =
    "6fc0618f 83a13a97 7c836c66 735344a9 fe7b8031 7c8340eb 8f6d30b5 1c8a340f \z
    926c477d e23f018f f1aac25a 6aebee6c 653d818c ee61ca03 95dccc2e 58bdab1d",
  ["looped_bfs 4 as written"] =
    "a2d787ba f66d107d 6f8e7708 3d938e86 833555e8 1bf43f6a a2dc7212 0015daae \z
    71c0de2e ca052bde a15f7c84 9830d145 4372eecf 57206acb bfb29dcb b1161080",
  ["looped_bfs 4 always"] =
    "ecb5a9d5 5df2b5b8 3f48b0a1 1d8ecef3 c09dd86b 0ed9480d 9e930cbc d7423ebd \z
    5f2143f9 cf1242ea 76154938 b40f38e9 41408cad ad6d2fb3 f6d0eeef 0c7b26bd",
  ["looped_bfs 4 except_last"] =
    "a2d787ba 4c04f373 cea1052f 8b056ddf b3dea6fd 2d7e2eb6 2fb167d9 38b2a780 \z
    5f3598e0 faa2bb04 10580729 bc4d8c8b 1f5f868e 1fbf83b2 a656c125 0153c5df",
  ["looped_bfs 8 as written"] =
    "afc5a8d5 f7307faf e9459d07 ef7ebb4b 3f1eae35 896b4a9f 59d134af 7bc6f2ee \z
    046de84c 96afd381 7330ace6 18f30aeb dbf5a9ee 682978af 4d5d1a35 dbd4ff7c",
  ["looped_bfs 8 always"] =
    "5e59accc 0f5c3cbe 3d291bcb 5723a4de 311e7d5e ba76d04b 078a6244 b158ba02 \z
    9cf7cf2e 7041d5ed e7f46404 be9d0c6b 2ea32bdc 675cd201 150dc344 9a434f08",
  ["looped_bfs 8 except_last"] =
    "afc5a8d5 bb75eb57 219525ce eddb5203 c27006fb 72a1226b c1ab41b3 d1cab027 \z
    60bbee06 922fdecb 8bd9a19e b982d80c 72edc679 1c269869 fa7ec0a8 edc95b68",
  ["naive 1 as written"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["naive 1 always"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["naive 1 except_last"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["naive 2 as written"] =
    "fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 \z
    fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6",
  ["naive 2 always"] =
    "fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 \z
    fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6",
  ["naive 2 except_last"] =
    "fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 \z
    fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6 fb6a97b6",
  ["naive 3 as written"] =
    "12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 \z
    12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9",
  ["naive 3 always"] =
    "12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 \z
    12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9",
  ["naive 3 except_last"] =
    "12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 \z
    12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9 12191cd9",
  ["naive 4 as written"] =
    "43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 \z
    43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639",
  ["naive 4 always"] =
    "43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 \z
    43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639",
  ["naive 4 except_last"] =
    "43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 \z
    43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639 43ab9639",
  ["naive 8 as written"] =
    "a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e \z
    a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e",
  ["naive 8 always"] =
    "a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e \z
    a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e",
  ["naive 8 except_last"] =
    "a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e \z
    a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e a4d4ab6e",
  ["pipedream 1 as written"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["pipedream 1 always"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["pipedream 1 except_last"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["pipedream 2 as written"] =
    "fb6a97b6 7a7c747e 436582fb 99df695e 4c60b0ba 866a0c85 8b6182ad b398d33e \z
    92913b95 b402e394 0fd253d8 cdcec9f7 92b08d99 a7c5a6b2 53c40700 b3a790db",
  ["pipedream 2 always"] =
    "fb6a97b6 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 \z
    2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163",
  ["pipedream 2 except_last"] =
    "fb6a97b6 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 \z
    2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163 2f81e163",
  ["pipedream 3 as written"] =
    "12191cd9 96fb34bd 9ccf2fc5 ac583655 b5eb8b5f 6b092304 f09882b4 2d91c20d \z
    0d31c033 c87cd071 6be092e1 954c2972 0138cd0a dd11a1f3 3637dd55 27c80e2b",
  ["pipedream 3 always"] =
    "12191cd9 eab5f6c1 eab5f6c1 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 \z
    9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230",
  ["pipedream 3 except_last"] =
    "12191cd9 eab5f6c1 eab5f6c1 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 \z
    9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230 9f3d8230",
  ["pipedream 4 as written"] =
    "43ab9639 a6fe3824 39cb4280 b16397f5 da1463bf 1d869d61 48ec3827 c6cc6a85 \z
    2b9391c7 191c69fe b89fc06d de3860b1 19b2e608 1c156264 ef4b23e7 d26d4ae9",
  ["pipedream 4 always"] =
    "43ab9639 3ded19d0 3ded19d0 fc8550f7 597749e8 30d3059d 30d3059d 30d3059d \z
    30d3059d 30d3059d 30d3059d 30d3059d 30d3059d 30d3059d 30d3059d 30d3059d",
  ["pipedream 4 except_last"] =
    "43ab9639 3ded19d0 3ded19d0 fc8550f7 597749e8 30d3059d 30d3059d 30d3059d \z
    30d3059d 30d3059d 30d3059d 30d3059d 30d3059d 30d3059d 30d3059d 30d3059d",
  ["pipedream 8 as written"] =
    "a4d4ab6e 2c30c05c 447b336d 60a07688 c20d0d84 49babf92 ec86934f d1244ee6 \z
    a7f2bf78 74253dd8 ad98686f 037374b9 98b42363 290d4b46 54418f83 44b617fa",
  ["pipedream 8 always"] =
    "a4d4ab6e 45495acf 45495acf 22ee83ec 7ce4e2f7 dda1e405 ebc3a2d7 7e84979a \z
    23d106cf 78f268b8 73f40522 6bd95ce8 10f185f3 8d6af6a6 8d6af6a6 8d6af6a6",
  ["pipedream 8 except_last"] =
    "a4d4ab6e 45495acf 45495acf 22ee83ec 7ce4e2f7 dda1e405 ebc3a2d7 7e84979a \z
    23d106cf 78f268b8 73f40522 6bd95ce8 10f185f3 8d6af6a6 8d6af6a6 8d6af6a6",
  ["pipedream_2bw 1 as written"] =
    "f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a \z
    f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a",
  ["pipedream_2bw 1 always"] =
    "f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a \z
    f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a",
  ["pipedream_2bw 1 except_last"] =
    "f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a \z
    f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a f6b09d1a",
  ["pipedream_2bw 2 as written"] =
    "df2ecef6 87c0575c 891c62ac b1c251a2 e3d7c8b9 918625cd eee6e7b0 2745608b \z
    d4836f96 c8acb3ec 037baa3f eac2aa87 1b18b9d9 26632ea1 06e3cc2d 434a56cd",
  ["pipedream_2bw 2 always"] =
    "e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be \z
    e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be",
  ["pipedream_2bw 2 except_last"] =
    "e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be \z
    e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be e09b49be",
  ["pipedream_2bw 3 as written"] =
    "685d6c12 3179858e e4f96461 26a23ee8 b2be56a7 b1a09169 6ed68f25 ba9e311e \z
    435ca5cf 46977751 a6330061 c7acd20d bb79dab0 c73cee63 64165ffb 5ba9fa02",
  ["pipedream_2bw 3 always"] =
    "3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea \z
    3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea",
  ["pipedream_2bw 3 except_last"] =
    "3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea \z
    3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea 3b16e6ea",
  ["pipedream_2bw 4 as written"] =
    "ac15462c cf5237bb b5430513 4222aa85 3a2da433 fb05c52f 22a266d6 d27ff0c6 \z
    11c4e77d eafe1414 0280fdaf 0cd50db6 aeec4f3f b5a37b36 e8743c29 59dbc61c",
  ["pipedream_2bw 4 always"] =
    "53540169 53540169 53540169 53540169 53540169 53540169 53540169 53540169 \z
    53540169 53540169 53540169 53540169 53540169 53540169 53540169 53540169",
  ["pipedream_2bw 4 except_last"] =
    "53540169 53540169 53540169 53540169 53540169 53540169 53540169 53540169 \z
    53540169 53540169 53540169 53540169 53540169 53540169 53540169 53540169",
  ["pipedream_2bw 8 as written"] =
    "1478e434 d27ce732 9095f4aa 7b8e3eae 82f2b9b5 13da7465 38813a42 3732b6c7 \z
    20e37cac 5a0e2a6a 38dcdc78 42e3f774 3dc3c2f1 018e7e88 17bed42b 97c04be0",
  ["pipedream_2bw 8 always"] =
    "50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e \z
    50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e",
  ["pipedream_2bw 8 except_last"] =
    "50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e \z
    50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e 50251d4e",
  ["v_half 1 as written"] =
    "009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 \z
    009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8",
  ["v_half 1 always"] =
    "8d7e311e 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 \z
    76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862",
  ["v_half 1 except_last"] =
    "009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 \z
    009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8",
  ["v_half 2 as written"] =
    "21bec19c 3282e7f1 07589064 b488ae9b 2cccd474 9ba121ed 1025f1c6 767df225 \z
    0b64ff8c 5f652cde 28fb41f2 9ad8bee7 59c1d5b6 ffb0f141 827f5b64 6e3d2f44",
  ["v_half 2 always"] =
    "823af99b 2f2b07f1 3503d0bc 3503d0bc 3503d0bc 3503d0bc 3503d0bc 3503d0bc \z
    3503d0bc 3503d0bc 3503d0bc 3503d0bc 3503d0bc 3503d0bc 3503d0bc 3503d0bc",
  ["v_half 2 except_last"] =
    "21bec19c a5659e7d 8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88 \z
    8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88 8c8e3a88",
  ["v_half 3 as written"] =
    "cf9cb416 c5cf018d b0973e35 5619d27c 2658d135 e90ff7ae 179b262d 7dfcd44e \z
    1bdd1996 8b260b37 8765521c 8b4be3d7 3c7f2cda 1a5e2bc7 bbd39266 f4c96359",
  ["v_half 3 always"] =
    "25afd226 c543a3a9 4f02f474 290bcb3c 290bcb3c 290bcb3c 290bcb3c 290bcb3c \z
    290bcb3c 290bcb3c 290bcb3c 290bcb3c 290bcb3c 290bcb3c 290bcb3c 290bcb3c",
  ["v_half 3 except_last"] =
    "cf9cb416 c543a3a9 43cb3396 f786a35e f786a35e f786a35e f786a35e f786a35e \z
    f786a35e f786a35e f786a35e f786a35e f786a35e f786a35e f786a35e f786a35e",
  ["v_half 4 as written"] =
    "38a1e5ee 81a1d9ed 87f97840 2edd8dd4 435f98a2 c3ec9b53 abbed59b 33d013b4 \z
    73a9e306 632bbc98 975a8a3b 977b6164 741e21a4 e33cb4a6 76b5a8ef 7a95cd61",
  ["v_half 4 always"] =
    "dc2c5a6b d2d6d347 53b49313 53b49313 df5c3c70 388adfcb 388adfcb 388adfcb \z
    388adfcb 388adfcb 388adfcb 388adfcb 388adfcb 388adfcb 388adfcb 388adfcb",
  ["v_half 4 except_last"] =
    "38a1e5ee d2d6d347 b423e01e b423e01e 24b7b725 19ffaa9b 19ffaa9b 19ffaa9b \z
    19ffaa9b 19ffaa9b 19ffaa9b 19ffaa9b 19ffaa9b 19ffaa9b 19ffaa9b 19ffaa9b",
  ["v_half 8 as written"] =
    "8dfd7a4e a7ac3a96 22294eb9 d3fb3866 b0a77c50 84bc13a2 4f187699 c1cad3ef \z
    9704eaad 9f42703c 1e58b9fc 2a7edbe1 c4fe65aa 97b5605e 6f3c139c b2b3df6b",
  ["v_half 8 always"] =
    "1bcd8840 4ad7bb67 400f26d8 f64918ff 0e9aa9f8 1291640b d6d021fc f6b6f1bc \z
    353527ca 2bf477ac 2bf477ac 2bf477ac 2bf477ac 2bf477ac 2bf477ac 2bf477ac",
  ["v_half 8 except_last"] =
    "8dfd7a4e 4ad7bb67 400f26d8 f64918ff 1841d3db 35233714 4276559e 6ced74c7 \z
    0c19100b 84f1803a 84f1803a 84f1803a 84f1803a 84f1803a 84f1803a 84f1803a",
  ["v_min 1 as written"] =
    "009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 \z
    009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8",
  ["v_min 1 always"] =
    "76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 \z
    76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862 76eb8862",
  ["v_min 1 except_last"] =
    "009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 \z
    009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8 009ef3f8",
  ["v_min 2 as written"] =
    "21bec19c 7733dfb9 bc41051c 78716f8d 1a047bcd 13f2a586 7a13b296 8e06e06d \z
    ae903106 36c5b439 39e519a9 1982f450 37efe2b2 1cdc1b3f 10811595 d2e2f1fc",
  ["v_min 2 always"] =
    "3b30daae 4239623f 4239623f 4239623f 4239623f 4239623f 4239623f 4239623f \z
    4239623f 4239623f 4239623f 4239623f 4239623f 4239623f 4239623f 4239623f",
  ["v_min 2 except_last"] =
    "21bec19c 2f0b331e 2f0b331e 2f0b331e 2f0b331e 2f0b331e 2f0b331e 2f0b331e \z
    2f0b331e 2f0b331e 2f0b331e 2f0b331e 2f0b331e 2f0b331e 2f0b331e 2f0b331e",
  ["v_min 3 as written"] =
    "cf9cb416 c5cf018d ea14dc19 9a02a526 31a6fed8 82572663 41c78e2f 0d623180 \z
    6e0dadcd 0cde6ec0 7755e35c e2eced2d 265a7fa9 40068732 7eed2216 91b94da9",
  ["v_min 3 always"] =
    "1d1ef55f 7d834d59 215bb0cf facc675d facc675d facc675d facc675d facc675d \z
    facc675d facc675d facc675d facc675d facc675d facc675d facc675d facc675d",
  ["v_min 3 except_last"] =
    "cf9cb416 4b141a39 2192d81c 62266e95 62266e95 62266e95 62266e95 62266e95 \z
    62266e95 62266e95 62266e95 62266e95 62266e95 62266e95 62266e95 62266e95",
  ["v_min 4 as written"] =
    "38a1e5ee 81a1d9ed 39da508b 187a0796 5cf8bebc 02532e31 66569199 21a07bcc \z
    a20f1982 5e206eb8 17094361 c1586fd6 8ced2198 8f7d325b 01b72cd3 cc8c26b1",
  ["v_min 4 always"] =
    "3512d4e0 e994459f f4fe4caa 9d88acd2 9d88acd2 9d88acd2 9d88acd2 9d88acd2 \z
    9d88acd2 9d88acd2 9d88acd2 9d88acd2 9d88acd2 9d88acd2 9d88acd2 9d88acd2",
  ["v_min 4 except_last"] =
    "38a1e5ee e994459f 7b0b2397 55316a0f 55316a0f 55316a0f 55316a0f 55316a0f \z
    55316a0f 55316a0f 55316a0f 55316a0f 55316a0f 55316a0f 55316a0f 55316a0f",
  ["v_min 8 as written"] =
    "8dfd7a4e a7ac3a96 22294eb9 02bc1af7 c2cf8f8e 9a44e195 f407f384 76d6878d \z
    8b82374e cd50c565 4d84ceaf aa4b8a63 982d37bb af42811a 1f7a6870 81303833",
  ["v_min 8 always"] =
    "c2a88374 c2a88374 566b7bbf 58917a9e f73d291a 21a08072 ddf1c668 ddf1c668 \z
    ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668",
  ["v_min 8 except_last"] =
    "8dfd7a4e c2a88374 566b7bbf a25c249f f73d291a cffe161d ddf1c668 ddf1c668 \z
    ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668 ddf1c668",
  ["zb_auto 1 as written"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_auto 1 always"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_auto 1 except_last"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_auto 2 as written"] =
    "fb6a97b6 f6aa1ccb 6089bc73 c2411a97 170c089b 5d39c68f c1a4cf9f 0bb6ba17 \z
    2e1ee1cf 8ed3c349 015240b5 c9a22233 5564ce27 6d112075 dd72ffe1 1e00f1d3",
  ["zb_auto 2 always"] =
    "fb6a97b6 acc33a06 e3cf6935 a5c812d2 ed584656 1f74025b 4c70f66f 045dab0a \z
    bf77e7af 790d81e6 6dcb2246 a00036f5 6c0bd3c3 7765c118 5b2feb32 710e13bb",
  ["zb_auto 2 except_last"] =
    "fb6a97b6 acc33a06 e3cf6935 a5c812d2 ed584656 1f74025b 4c70f66f 045dab0a \z
    bf77e7af 790d81e6 6dcb2246 a00036f5 6c0bd3c3 7765c118 5b2feb32 710e13bb",
  ["zb_auto 3 as written"] =
    "12191cd9 59f15455 8d581a06 d242ddac 629776f4 0c374e1e 76027802 a6799132 \z
    cdee6e65 4cf28864 0b82d26c 970c32be a95f7066 e27e1b0c 5a5cf876 3d86c24f",
  ["zb_auto 3 always"] =
    "12191cd9 64ba558d b1728155 8e2f7125 ec654ee7 7816063a 6e3c6782 e4f28d09 \z
    239c2817 959b562d 5bdf04a5 5ff88d00 5a589f4a 6f5d4bbf 0a892ce5 1fda3b33",
  ["zb_auto 3 except_last"] =
    "12191cd9 64ba558d b1728155 8e2f7125 ec654ee7 7816063a 6e3c6782 e4f28d09 \z
    239c2817 959b562d 5bdf04a5 5ff88d00 5a589f4a 6f5d4bbf 0a892ce5 1fda3b33",
  ["zb_auto 4 as written"] =
    "43ab9639 ceedc54f 508f1fea a67332f8 9a5a1e5b 580c2a9b 81e5b55b 8c8b7223 \z
    ff074277 b9044e83 7def8fcf 0eee63db a7c5b3ff ecd9f863 19f607ab eb1ea50f",
  ["zb_auto 4 always"] =
    "43ab9639 513dedb3 294df2eb 3f5c981f 0084708e 079e640b e6dbc9c9 26ab919d \z
    8aa99dd5 aa8b5508 5f4e56ff 5cc87a5b 29351042 d0b2e86a 1b4e2f6d efca2683",
  ["zb_auto 4 except_last"] =
    "43ab9639 513dedb3 294df2eb 3f5c981f 0084708e 079e640b e6dbc9c9 26ab919d \z
    8aa99dd5 aa8b5508 5f4e56ff 5cc87a5b 29351042 d0b2e86a 1b4e2f6d efca2683",
  ["zb_auto 8 as written"] =
    "a4d4ab6e f19709d4 1236318a 14ac88df e76308c7 92eb9f47 4318d8dd 6c8d4ae7 \z
    df71ad21 96585dd9 0d7c18f9 3dfac329 c78db129 fbfe13e1 5779fdf1 0b7a79a9",
  ["zb_auto 8 always"] =
    "a4d4ab6e d34d2ecf 607b61ea 8a385cef ed23c350 56252ebf 21df3621 6cbccf70 \z
    64a6b70d 21cd4cd6 caf12f45 1f80919f 656a783a ded02e84 87bb46c5 04166fbe",
  ["zb_auto 8 except_last"] =
    "a4d4ab6e d34d2ecf 607b61ea 8a385cef ed23c350 56252ebf 21df3621 6cbccf70 \z
    64a6b70d 21cd4cd6 caf12f45 1f80919f 656a783a ded02e84 87bb46c5 04166fbe",
  ["zb_h1 1 as written"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_h1 1 always"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_h1 1 except_last"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_h1 2 as written"] =
    "fb6a97b6 f6aa1ccb 6089bc73 c2411a97 170c089b 5d39c68f c1a4cf9f 0bb6ba17 \z
    2e1ee1cf 8ed3c349 015240b5 c9a22233 5564ce27 6d112075 dd72ffe1 1e00f1d3",
  ["zb_h1 2 always"] =
    "fb6a97b6 acc33a06 e3cf6935 a5c812d2 ed584656 1f74025b 4c70f66f 045dab0a \z
    bf77e7af 790d81e6 6dcb2246 a00036f5 6c0bd3c3 7765c118 5b2feb32 710e13bb",
  ["zb_h1 2 except_last"] =
    "fb6a97b6 acc33a06 e3cf6935 a5c812d2 ed584656 1f74025b 4c70f66f 045dab0a \z
    bf77e7af 790d81e6 6dcb2246 a00036f5 6c0bd3c3 7765c118 5b2feb32 710e13bb",
  ["zb_h1 3 as written"] =
    "12191cd9 59f15455 8a77c9bc d242ddac 629776f4 0c374e1e 76027802 a6799132 \z
    cdee6e65 4cf28864 0b82d26c 970c32be a95f7066 e27e1b0c 5a5cf876 3d86c24f",
  ["zb_h1 3 always"] =
    "12191cd9 ca1e8659 c3156186 8e2f7125 ec654ee7 7816063a 6e3c6782 e4f28d09 \z
    239c2817 959b562d 5bdf04a5 5ff88d00 5a589f4a 6f5d4bbf 0a892ce5 1fda3b33",
  ["zb_h1 3 except_last"] =
    "12191cd9 ca1e8659 c3156186 8e2f7125 ec654ee7 7816063a 6e3c6782 e4f28d09 \z
    239c2817 959b562d 5bdf04a5 5ff88d00 5a589f4a 6f5d4bbf 0a892ce5 1fda3b33",
  ["zb_h1 4 as written"] =
    "43ab9639 ceedc54f d8a1476e 22d91cff 9a5a1e5b 580c2a9b 81e5b55b 8c8b7223 \z
    ff074277 b9044e83 7def8fcf 0eee63db a7c5b3ff ecd9f863 19f607ab eb1ea50f",
  ["zb_h1 4 always"] =
    "43ab9639 e3ce5f87 bd36bf34 e34b8f3f 0084708e 079e640b e6dbc9c9 26ab919d \z
    8aa99dd5 aa8b5508 5f4e56ff 5cc87a5b 29351042 d0b2e86a 1b4e2f6d efca2683",
  ["zb_h1 4 except_last"] =
    "43ab9639 e3ce5f87 bd36bf34 e34b8f3f 0084708e 079e640b e6dbc9c9 26ab919d \z
    8aa99dd5 aa8b5508 5f4e56ff 5cc87a5b 29351042 d0b2e86a 1b4e2f6d efca2683",
  ["zb_h1 8 as written"] =
    "a4d4ab6e f19709d4 f2308bdb fe7db227 adf5f104 80db1fc6 bbd19164 5a2e3969 \z
    df71ad21 96585dd9 0d7c18f9 3dfac329 c78db129 fbfe13e1 5779fdf1 0b7a79a9",
  ["zb_h1 8 always"] =
    "a4d4ab6e 1494014d f23382e7 321fbb54 30f2434b 78dbba0f 26151c64 81c352aa \z
    64a6b70d 21cd4cd6 caf12f45 1f80919f 656a783a ded02e84 87bb46c5 04166fbe",
  ["zb_h1 8 except_last"] =
    "a4d4ab6e 1494014d f23382e7 321fbb54 30f2434b 78dbba0f 26151c64 81c352aa \z
    64a6b70d 21cd4cd6 caf12f45 1f80919f 656a783a ded02e84 87bb46c5 04166fbe",
  ["zb_h2 1 as written"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_h2 1 always"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_h2 1 except_last"] =
    "6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 \z
    6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29 6096bf29",
  ["zb_h2 2 as written"] =
    "fb6a97b6 f6aa1ccb f11681f6 51a4b1fe 544af590 4ab7d5be 370c55ae 4dd64c60 \z
    fa4cf1ec f0feb8a2 4467e062 a035e302 3f7209b4 0968ce36 1226528c 6b528680",
  ["zb_h2 2 always"] =
    "fb6a97b6 acc33a06 ab2a8dac 1b98683c a08ada2c f1298092 79764e96 3122b7da \z
    2a979d59 05019a60 529a7a90 6e4e6a7a 0c42635e f6a6df80 0f381d7e 3633209d",
  ["zb_h2 2 except_last"] =
    "fb6a97b6 acc33a06 ab2a8dac 1b98683c a08ada2c f1298092 79764e96 3122b7da \z
    2a979d59 05019a60 529a7a90 6e4e6a7a 0c42635e f6a6df80 0f381d7e 3633209d",
  ["zb_h2 3 as written"] =
    "12191cd9 59f15455 8d581a06 1aaf3ef9 ef9bc2c5 0fe2295d 6fbc4237 c28ee2c6 \z
    b5a57c78 4f8f2213 95e9ba66 e80611e4 68910b6c e69c7580 709bd4b0 f669f6c6",
  ["zb_h2 3 always"] =
    "12191cd9 ca1e8659 bdde4a87 a1b8c6bd ab9f8228 6e56de4a f70e7068 5d5e4c33 \z
    ff888f04 351f1a12 daa729bd b96243b3 1a484cf1 50b79105 aba481a1 8891022e",
  ["zb_h2 3 except_last"] =
    "12191cd9 ca1e8659 bdde4a87 a1b8c6bd ab9f8228 6e56de4a f70e7068 5d5e4c33 \z
    ff888f04 351f1a12 daa729bd b96243b3 1a484cf1 50b79105 aba481a1 8891022e",
  ["zb_h2 4 as written"] =
    "43ab9639 ceedc54f 508f1fea a67332f8 837ad06d a1ec3ac3 61fb1415 73c32dd9 \z
    ca06aad9 43551f19 0266d539 369c3399 f5469749 2ee85525 647b9679 fa06af6d",
  ["zb_h2 4 always"] =
    "43ab9639 e3ce5f87 6fe3f0f9 4db3c287 fcb06b9a 1b15869a 5503ea28 b3f09b88 \z
    38f37803 51107605 0c9795a9 41750a42 8a8bc9dc 6b4e73e7 079e05ce f1c7885c",
  ["zb_h2 4 except_last"] =
    "43ab9639 e3ce5f87 6fe3f0f9 4db3c287 fcb06b9a 1b15869a 5503ea28 b3f09b88 \z
    38f37803 51107605 0c9795a9 41750a42 8a8bc9dc 6b4e73e7 079e05ce f1c7885c",
  ["zb_h2 8 as written"] =
    "a4d4ab6e f19709d4 1236318a 14ac88df e76308c7 92eb9f47 4318d8dd 6c8d4ae7 \z
    35d6682d 63e5d5fb f60446ec c82820e1 ce9374bc db6f2dfa 32acf308 91d7e058",
  ["zb_h2 8 always"] =
    "a4d4ab6e 1494014d 320be68a ee585f9c a137aa8f 6957d041 60f2e2d6 ea1d70a3 \z
    2c9f0c20 37d71bc1 544c5485 8074fc1e b9f18d37 8c665dca da5b1c33 e9ca7bda",
  ["zb_h2 8 except_last"] =
    "a4d4ab6e 1494014d 320be68a ee585f9c a137aa8f 6957d041 60f2e2d6 ea1d70a3 \z
    2c9f0c20 37d71bc1 544c5485 8074fc1e b9f18d37 8c665dca da5b1c33 e9ca7bda",
  ["zbv 1 as written"] =
    "009ef3f8 8588539d fec26d98 69cace51 dfdfde51 647637a2 98e78a26 8d58f4e1 \z
    a2f00726 19f41cd9 b0720179 e552fd78 3bf2754a e7fe01ab f78cf68d dba6968e",
  ["zbv 1 always"] =
    "76eb8862 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e \z
    8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e",
  ["zbv 1 except_last"] =
    "009ef3f8 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e \z
    8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e 8d7e311e",
  ["zbv 2 as written"] =
    "21bec19c 2adc6821 e5e4aad0 922cf47a b3a0f69d 8d6f02fc 0c6d2eee a5b1a910 \z
    04f85f9e f8146949 ce9cd4a0 2d566fd4 a5e99e5f 4d06dc33 f955e326 bc8621bc",
  ["zbv 2 always"] =
    "3b30daae aa2f8ee5 a519a948 a519a948 a519a948 a519a948 a519a948 a519a948 \z
    a519a948 a519a948 a519a948 a519a948 a519a948 a519a948 a519a948 a519a948",
  ["zbv 2 except_last"] =
    "21bec19c aa2f8ee5 a519a948 a519a948 a519a948 a519a948 a519a948 a519a948 \z
    a519a948 a519a948 a519a948 a519a948 a519a948 a519a948 a519a948 a519a948",
  ["zbv 3 as written"] =
    "cf9cb416 cc96aa77 3188be29 f1c7385d b78944b0 2772857c 7115d76d 4e659e24 \z
    115c2d3c ca45a051 a8b492e3 6dd74299 36add8cf fd255ec0 99f64fe0 6601d6c3",
  ["zbv 3 always"] =
    "1d1ef55f 5f481df2 a02d122e 6219d80e 81655f96 81655f96 81655f96 81655f96 \z
    81655f96 81655f96 81655f96 81655f96 81655f96 81655f96 81655f96 81655f96",
  ["zbv 3 except_last"] =
    "cf9cb416 5f481df2 a02d122e 6219d80e 81655f96 81655f96 81655f96 81655f96 \z
    81655f96 81655f96 81655f96 81655f96 81655f96 81655f96 81655f96 81655f96",
  ["zbv 4 as written"] =
    "38a1e5ee 11b60497 d24123c1 c0e66a8c 2f7cfad9 fe66c3fc 4628b177 6b6c3633 \z
    8203a2e8 9c31329b 04e9b8de 89ce7942 13e98fb3 69d34e0f eb9b2146 f5ad77ab",
  ["zbv 4 always"] =
    "3512d4e0 33a16709 27ed1135 2f202e55 074ab5c8 60c6edbd 2079a8e0 2079a8e0 \z
    2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0",
  ["zbv 4 except_last"] =
    "38a1e5ee 33a16709 27ed1135 2f202e55 074ab5c8 60c6edbd 2079a8e0 2079a8e0 \z
    2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0 2079a8e0",
  ["zbv 8 as written"] =
    "8dfd7a4e c464c528 1095b8c0 14165267 fcdd4a85 8e518cf0 ecacbb7a 73001d64 \z
    47d30e5d 034d920f 4e2b97fa 182190ce 14cde839 f9273626 cc150912 27a8db78",
  ["zbv 8 always"] =
    "c2a88374 462e938c 8f494f5a 5697bbf6 63fec2b4 dafef763 6187888b f2696dc4 \z
    77776d08 3599c5c9 13e6733f 15f95c58 9315b5c4 a12ac6d5 0c13828e 0c13828e",
  ["zbv 8 except_last"] =
    "8dfd7a4e 462e938c 8f494f5a 5697bbf6 63fec2b4 dafef763 6187888b f2696dc4 \z
    77776d08 3599c5c9 13e6733f 15f95c58 9315b5c4 a12ac6d5 0c13828e 0c13828e",
}
