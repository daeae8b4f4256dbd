-- tests/golden/lives.lua - see lives_of_schedules.lua, which wrote this file.
return {
  ["1f1b 1 as written"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["1f1b 1 always"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["1f1b 1 except_last"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["1f1b 2 as written"] =
    "75a3aeaf 10467562 79bcc127 08ba8942 00f07336 c943ec91 ba769b29 8f1b9922 \z
    bd3579a1 9b170118 b2fcef24 a415bedb 8d13e8cd 1a7f79de 04bc6adc 4d7bdd87",
  ["1f1b 2 always"] =
    "75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf \z
    75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf",
  ["1f1b 2 except_last"] =
    "75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf \z
    75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf",
  ["1f1b 3 as written"] =
    "db352f37 c7f2ad2b b918c493 6c9e0cca 4b83bf68 ff9e4a57 9222a6e7 88ed1ef2 \z
    262087c4 3875185e 5bc1252e 3ca25f31 29ac7f39 d46e6084 786b93ca 864449ec",
  ["1f1b 3 always"] =
    "db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 \z
    db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37",
  ["1f1b 3 except_last"] =
    "db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 \z
    db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37",
  ["1f1b 4 as written"] =
    "7bcff52c 62817bf0 c2b44230 651b1086 15d37be7 f4f5f040 0d756bd2 a2d4c264 \z
    c14db972 c0770143 e19f295c abdcdb90 eee11e89 1c378d45 db7a1592 657cbd78",
  ["1f1b 4 always"] =
    "7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c \z
    7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c",
  ["1f1b 4 except_last"] =
    "7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c \z
    7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c",
  ["1f1b 8 as written"] =
    "1f8c8f1f 5e52eabc 5df1115d c37b7887 ca521c58 d002fa68 abaa9697 4b903aa3 \z
    0d1bf384 1b137bdb f7e198d2 739369e6 9dda7683 09ef4a6f 273111ea 787c3a1b",
  ["1f1b 8 always"] =
    "1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f \z
    1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f",
  ["1f1b 8 except_last"] =
    "1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f \z
    1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f",
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
    "75a3aeaf e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f \z
    e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f",
  ["chimera 2 always"] =
    "75a3aeaf 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb \z
    314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb",
  ["chimera 2 except_last"] =
    "75a3aeaf e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f \z
    e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f",
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
    "7bcff52c 589fc0a3 6d096994 a16137c6 a9e12060 160f4385 545f9edb d6ac23c6 \z
    c9c3fe35 7183d538 8fa68c38 6b3ed9c1 5e52e91d b1fd0b94 efc64ef8 00c54c9b",
  ["chimera 4 always"] =
    "7bcff52c 2d221601 2d221601 2d221601 2d221601 2d221601 2d221601 2d221601 \z
    2d221601 2d221601 2d221601 2d221601 2d221601 2d221601 2d221601 2d221601",
  ["chimera 4 except_last"] =
    "7bcff52c 589fc0a3 202b087d 2d221601 2d221601 139a5ae7 139a5ae7 2d221601 \z
    2d221601 139a5ae7 139a5ae7 2d221601 2d221601 139a5ae7 139a5ae7 2d221601",
  ["chimera 8 as written"] =
    "1f8c8f1f e89c0f1f 53716758 fab52088 2166a324 9910aecd a1d7c15f c361959c \z
    009a33a7 574ca514 ff0a0ae7 f28dbb08 e06113a9 9f062ee8 f49db728 e382e7c2",
  ["chimera 8 always"] =
    "1f8c8f1f 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd \z
    454b65bd 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd",
  ["chimera 8 except_last"] =
    "1f8c8f1f e89c0f1f 9ee78c8d 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd \z
    454b65bd b2d30b5b b2d30b5b 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd",
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
    "75a3aeaf e82fea2f 2dc51cbf fc486708 ac3d7446 e93e4097 f35873c5 a7bbeae0 \z
    4d203e67 214de4e8 3416516c 70e1bbcb 6f5167ef 2663ff3a 1cce1890 55783461",
  ["dualpipe 2 always"] =
    "75a3aeaf 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb \z
    314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb 314d36cb",
  ["dualpipe 2 except_last"] =
    "75a3aeaf e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f \z
    e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f e82fea2f",
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
    "7bcff52c 589fc0a3 6d096994 a16137c6 aadb102c f5c0b047 77a99168 0b3ec4a4 \z
    3aaaaf6a 2730d6be 5cffa518 dfc2ac8b fbce6fc1 a0276429 00a30707 09dd40e0",
  ["dualpipe 4 always"] =
    "7bcff52c 2d221601 2d221601 2d221601 2d221601 2d221601 2d221601 ddc5480b \z
    2d221601 ddc5480b 2d221601 ddc5480b 2d221601 ddc5480b 2d221601 ddc5480b",
  ["dualpipe 4 except_last"] =
    "7bcff52c 589fc0a3 202b087d 2d221601 5b56cb13 1d963d61 1d963d61 e686746f \z
    1d963d61 e686746f 1d963d61 e686746f 1d963d61 e686746f 1d963d61 e686746f",
  ["dualpipe 8 as written"] =
    "1f8c8f1f e89c0f1f 53716758 fab52088 2166a324 9910aecd a1d7c15f c361959c \z
    fdf5a7bc f92f5b12 465586cc 343a09bd 678419e2 30d5f6e5 1242160a 30f5666a",
  ["dualpipe 8 always"] =
    "1f8c8f1f 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd \z
    454b65bd 454b65bd 454b65bd 454b65bd d199de89 baac9a29 d340dbef 0c91a2a9",
  ["dualpipe 8 except_last"] =
    "1f8c8f1f e89c0f1f 9ee78c8d 454b65bd 454b65bd 454b65bd 454b65bd 454b65bd \z
    3de456bb d8cc6f95 d8cc6f95 d8cc6f95 7f837f01 ad0c9b4d 6f35fe93 e3df2ca5",
  ["dualpipev 1 as written"] =
    "7e50d9ea 1f282da1 755b427e 7968eb11 3fe92135 86a46a80 57e32268 08057dc1 \z
    cb85fc90 760ba2df 1845554b 5f250c42 cf546edc 4345662d 874bed33 8eded8de",
  ["dualpipev 1 always"] =
    "3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 \z
    3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84",
  ["dualpipev 1 except_last"] =
    "7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea \z
    7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea",
  ["dualpipev 2 as written"] =
    "689ccb79 38e1fd1c 3486b925 5b3d3b72 8499389b 61b952d8 4ae2753e 04f1a614 \z
    56b3d05e deb7d40f 9cf48e14 69bfe2f0 d7298f09 df0ddf25 c6f11276 011b3e98",
  ["dualpipev 2 always"] =
    "b48762a2 b48762a2 b48762a2 19b19937 19b19937 19b19937 19b19937 19b19937 \z
    19b19937 19b19937 19b19937 19b19937 19b19937 19b19937 19b19937 19b19937",
  ["dualpipev 2 except_last"] =
    "689ccb79 b48762a2 8394a5f0 364927f5 364927f5 364927f5 364927f5 364927f5 \z
    364927f5 364927f5 364927f5 364927f5 364927f5 364927f5 364927f5 364927f5",
  ["dualpipev 3 as written"] =
    "23aeb324 5ee7f1c3 562d09d3 d08a2cce 717b403a ad5ba2ee a7a1da2b 9408b3b8 \z
    6afb7f86 b7141e23 b0cc68e1 dfbd087f 6894d32d 9a07fc20 83f4511c f47ea077",
  ["dualpipev 3 always"] =
    "28530394 28530394 28530394 28530394 28530394 d45a79fa d45a79fa d45a79fa \z
    d45a79fa d45a79fa d45a79fa d45a79fa d45a79fa d45a79fa d45a79fa d45a79fa",
  ["dualpipev 3 except_last"] =
    "23aeb324 28530394 28530394 48900bca 48900bca ac6d140c ac6d140c ac6d140c \z
    ac6d140c ac6d140c ac6d140c ac6d140c ac6d140c ac6d140c ac6d140c ac6d140c",
  ["dualpipev 4 as written"] =
    "472ba1af 876e3398 9226224d 1c388981 4ec035fa 896fb71d ae2f165a b829c291 \z
    9258b596 2f7abd79 19363054 f8ce38d8 dd544391 57d5f28d 5591cf3c 5f820ec9",
  ["dualpipev 4 always"] =
    "1450abea 1450abea 1450abea 1450abea 1450abea 1450abea 6803166d 2f710979 \z
    2f710979 2f710979 2f710979 2f710979 2f710979 2f710979 2f710979 2f710979",
  ["dualpipev 4 except_last"] =
    "472ba1af 1450abea 1450abea 1450abea 811e91f0 811e91f0 79feeaaf 5f3e3413 \z
    5f3e3413 5f3e3413 5f3e3413 5f3e3413 5f3e3413 5f3e3413 5f3e3413 5f3e3413",
  ["dualpipev 8 as written"] =
    "d609ceff e61b6bf7 ddf548bc 656217c7 79d8370d 4d6733e4 4c384aa8 2f966950 \z
    860a11ea 73ed6882 0552ef56 d77667b0 3a14987e 9fb7c8de f0f8c564 ad737b35",
  ["dualpipev 8 always"] =
    "f714b0bd f714b0bd f714b0bd f714b0bd f714b0bd f714b0bd f714b0bd f714b0bd \z
    f714b0bd f714b0bd 25ffbaa5 b9d7f5f9 1032207d 7e553daa 1f699f4e 833426d1",
  ["dualpipev 8 except_last"] =
    "d609ceff f714b0bd f714b0bd f714b0bd f714b0bd f714b0bd f714b0bd f714b0bd \z
    44038e28 44038e28 21f5d048 88511830 cd54ff02 ab7bd3bd c829608f b9f6fa22",
  ["gpipe 1 as written"] =
    "84bc306f d8bff840 ea962a19 04e9ff68 aded4fb5 01311272 27bdc062 a77d4e4e \z
    f0d7d3b0 65a394e4 60adce1d dd483d0a 08c5d0e2 93b82524 7d3cc14b 1d47f640",
  ["gpipe 1 always"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["gpipe 1 except_last"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["gpipe 2 as written"] =
    "75a3aeaf b6ad35c7 4238c85e 035b820e fe2754bd 9b765d71 50e628a3 88aac4e2 \z
    4c2eaf3b f9bfafa5 64352f1f b79bbbf5 9111702f 0b7f026b e23ece15 099c48ab",
  ["gpipe 2 always"] =
    "75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf \z
    75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf",
  ["gpipe 2 except_last"] =
    "75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf \z
    75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf",
  ["gpipe 3 as written"] =
    "db352f37 d72462f3 d23b1bdc c007d075 553983f3 8b310fd8 daa3b439 27cf50ea \z
    fdcb340a 0e1acf6a e103d3d0 907ebb16 75611bc1 f2617c14 7bbdf652 20ba43bf",
  ["gpipe 3 always"] =
    "db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 \z
    db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37",
  ["gpipe 3 except_last"] =
    "db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 \z
    db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37",
  ["gpipe 4 as written"] =
    "7bcff52c 5acaed38 7d1d62af b17b9259 2bfc38bf 80b536bc fe5f32b9 a0ab797b \z
    2737eb1e 4c6490d6 7cf7ee88 4922b44e 1085f145 4b16fd57 b3357aef 2c97f60d",
  ["gpipe 4 always"] =
    "7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c \z
    7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c",
  ["gpipe 4 except_last"] =
    "7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c \z
    7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c",
  ["gpipe 8 as written"] =
    "1f8c8f1f 8f2ab550 e53a111c 71051905 a3d3ed08 e52df18d b1c9842f c916bbf5 \z
    139fd60d e727191d 82b8a36b a8b70780 5f0ff75c 2102de87 9ccdc495 c5773a27",
  ["gpipe 8 always"] =
    "1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f \z
    1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f",
  ["gpipe 8 except_last"] =
    "1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f \z
    1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f",
  ["interleaved_1f1b 1 as written"] =
    "7e50d9ea 6b932f3b 931b748a 84a868c7 4afe78c7 1c6928a0 0123ec1c cbf2dfb7 \z
    3e77391c 52aeb0bf 8709835f 9e9bfb6a ae069658 9e006dad 033adecb 73041c14",
  ["interleaved_1f1b 1 always"] =
    "3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 \z
    3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84",
  ["interleaved_1f1b 1 except_last"] =
    "7e50d9ea 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 \z
    3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84",
  ["interleaved_1f1b 2 as written"] =
    "5ae70520 08500bb5 156c0b17 36baea77 5cc3d860 7769464d 3577b80e c2870a29 \z
    c02b7fca b92525dc 7bc45576 9d04a27d 7d0f5378 5753e30e bfefec5f 1ca4f091",
  ["interleaved_1f1b 2 always"] =
    "3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 \z
    3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8",
  ["interleaved_1f1b 2 except_last"] =
    "5ae70520 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 \z
    3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8 3d9e46c8",
  ["interleaved_1f1b 3 as written"] =
    "ebfaa841 88748106 696dbf2a c959b680 5c605b9b e9e261b4 248c8650 87cb2785 \z
    8087d667 e3680e1e ae20c310 e3acd9c6 f0b0869d a0f95280 4a11dc85 edb945ed",
  ["interleaved_1f1b 3 always"] =
    "68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c \z
    68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c",
  ["interleaved_1f1b 3 except_last"] =
    "ebfaa841 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c \z
    68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c 68c86e2c",
  ["interleaved_1f1b 4 as written"] =
    "cf4b7403 2c17078e 12c0a0e0 ce7a7196 e51fda57 4e215680 0bbe5659 00ee58e7 \z
    0f5e4a75 dde71889 f8f5cf9a a59116ca b1111964 e1c3fcdc b15034f4 ebeff09c",
  ["interleaved_1f1b 4 always"] =
    "fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 \z
    fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90",
  ["interleaved_1f1b 4 except_last"] =
    "cf4b7403 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 \z
    fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90 fa3c6e90",
  ["interleaved_1f1b 8 as written"] =
    "9d651720 d7329dd6 072aa5ef ef0cf9cd 1f42e5fb b75d0d4e 89ceb1dc 0eeea11a \z
    5f8e92b1 11d69410 7611f183 2ca7a929 958bd862 9003f20f 2e92746b fe9a1319",
  ["interleaved_1f1b 8 always"] =
    "c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 \z
    c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611",
  ["interleaved_1f1b 8 except_last"] =
    "9d651720 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 \z
    c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611 c2274611",
  ["interleaved_zero_bubble 1 as written"] =
    "7e50d9ea 6b932f3b 931b748a 84a868c7 4afe78c7 1c6928a0 0123ec1c cbf2dfb7 \z
    3e77391c 52aeb0bf 8709835f 9e9bfb6a ae069658 9e006dad 033adecb 73041c14",
  ["interleaved_zero_bubble 1 always"] =
    "3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 \z
    3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84",
  ["interleaved_zero_bubble 1 except_last"] =
    "7e50d9ea 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 \z
    3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84",
  ["interleaved_zero_bubble 2 as written"] =
    "5ae70520 cf99a31d a4f2cee9 35805587 7b9b9586 b429f9b5 75a80996 047bebd9 \z
    65a7c0a4 1a20f6d7 85f9c9a6 37c84b11 32016c08 21f20623 15f1bcd4 4182e4cb",
  ["interleaved_zero_bubble 2 always"] =
    "a8d0f8e4 fa397481 8b71df87 55f1f411 b0c54e61 38bda69b 3307c19b 62231161 \z
    21917697 7cc08091 a6616375 71cb5d5b c622c5f1 bb1d358d 7a1f2371 2d0f0649",
  ["interleaved_zero_bubble 2 except_last"] =
    "5ae70520 fa397481 8b71df87 55f1f411 b0c54e61 38bda69b 3307c19b 62231161 \z
    21917697 7cc08091 a6616375 71cb5d5b c622c5f1 bb1d358d 7a1f2371 2d0f0649",
  ["interleaved_zero_bubble 3 as written"] =
    "ebfaa841 91510440 ecbc2e46 4cd95bd9 ac2f7996 e8c1be0a f0a78b33 b387d8e2 \z
    8b7f4a68 f4403cef c9e19bb0 8da12336 265a662a b1408f63 0cbaf953 aa31bf19",
  ["interleaved_zero_bubble 3 always"] =
    "4ef9e45e 2f6c6e02 df8c21b5 a80a948f 80053e01 cd8dbd01 79c94481 74884b81 \z
    c2820861 f44be4a9 d2d86831 c5bc5421 7fb536d1 0ce345d1 dc34ed53 66621609",
  ["interleaved_zero_bubble 3 except_last"] =
    "ebfaa841 2f6c6e02 df8c21b5 a80a948f 80053e01 cd8dbd01 79c94481 74884b81 \z
    c2820861 f44be4a9 d2d86831 c5bc5421 7fb536d1 0ce345d1 dc34ed53 66621609",
  ["interleaved_zero_bubble 4 as written"] =
    "cf4b7403 eb0c04ef c7bde4cf b0df3a64 05d53c94 5d7aa3f1 5e678047 2be067d4 \z
    a4f50f25 6fe76bf4 d6496ecf ae5f53cc 29fc2229 f7b23601 5a8bea60 e4dfe3f8",
  ["interleaved_zero_bubble 4 always"] =
    "1320ba45 12454bd9 aafb443e a8ffe3a0 ed6d023c 60dd4200 96e4b11c b17b14d0 \z
    94837c8e fd15a1b6 7787f3f6 4d0ac1d8 50293abc 39a043f8 611c5014 d7cff960",
  ["interleaved_zero_bubble 4 except_last"] =
    "cf4b7403 12454bd9 aafb443e a8ffe3a0 ed6d023c 60dd4200 96e4b11c b17b14d0 \z
    94837c8e fd15a1b6 7787f3f6 4d0ac1d8 50293abc 39a043f8 611c5014 d7cff960",
  ["interleaved_zero_bubble 8 as written"] =
    "9d651720 17412ede b0ae55d1 a06e4311 a41831bf 9257e364 b7c97c4f 15368f08 \z
    6009dca2 43973d56 ed53a2fb d57412d5 b03c0c61 114c6417 5e1280e0 2f253630",
  ["interleaved_zero_bubble 8 always"] =
    "cfa95207 c00bc291 cc153a12 404ba998 0f24f597 19c271ed 71433d3c 0793c7a3 \z
    bac2c791 c77bb207 c16ce659 3482a5cd 3cb54003 c4462043 b5a35c21 b2be2439",
  ["interleaved_zero_bubble 8 except_last"] =
    "9d651720 c00bc291 cc153a12 404ba998 0f24f597 19c271ed 71433d3c 0793c7a3 \z
    bac2c791 c77bb207 c16ce659 3482a5cd 3cb54003 c4462043 b5a35c21 b2be2439",
  ["looped_bfs 1 as written"] =
    "7e50d9ea 5929eb9a 8a3408d2 cb94bb46 0c879bb8 798ca3a4 ab134c5f af048556 \z
    30ffbd7c e0280cac f68147ea de757885 24d121ba cf331d95 1554c488 4f0086bf",
  ["looped_bfs 1 always"] =
    "3b2d3a84 7a79d2bf a3199b68 22f5d26a 6811913d f23ff22c 87b25559 a73a000a \z
    ac552d48 b23863b1 88117de5 ad2ad6ca e7e798c1 074e1667 61f497ec 36d99e99",
  ["looped_bfs 1 except_last"] =
    "7e50d9ea bfe2a79d 74c39f46 9232ff10 086a700f 7ddba28a 2e160d27 cfc48d95 \z
    a8ef28e5 f2980ed8 b462cc9d 302d05fa 3ff2e401 0fdc34eb 3ba48f48 ee7ef271",
  ["looped_bfs 2 as written"] =
    "5ae70520 d7105930 a7801bc5 c47ae10b f8ae439f 7b26cbcd 5a6280d1 144d1e1a \z
    30c873d9 0224031e 1b421e13 366ac8aa da83358c 6ae2f8a5 c88c1850 202d674b",
  ["looped_bfs 2 always"] =
    "3d9e46c8 94acce1a 17c58264 4dca89f2 374675e5 11c6b755 bcdf6d5c 6abcdef2 \z
    6cb94ba9 26c3549a 582b7d42 bcd39a32 3624197a 5be6e372 c88c38c0 830bf872",
  ["looped_bfs 2 except_last"] =
    "5ae70520 91978a7a 081137c9 27e293b5 77c0a670 bee89c2a 273b40f1 d495e682 \z
    7e6b55fa 3b75c57e 396a899a d9434abe d6ac7110 5d7daf16 dc41cdf4 8cde29f6",
  ["looped_bfs 3 as written"] =
    "ebfaa841 f25362d6 0093db31 fb0c0def 663d03b0 b53d33fd 3093b6f6 90375b08 \z
    d51c83be 61a177a1 41368899 437b8a24 2d9cdd9a f04e50fb d3b069c5 41463a07",
  ["looped_bfs 3 always"] =
    "68c86e2c 5068c752 057f65d0 fd75b4fd a956ffba 25ccf0f1 eebcba70 daa046e2 \z
    e71bbbd7 a8d74879 dc62b28e 2dfdcd68 f21540af 7c7cb928 8c48c7d7 29c53981",
  ["looped_bfs 3 except_last"] =
    "ebfaa841 8a41af39 9217a5d4 f42212a7 36a28bdf 92a75ce5 a21f7a1b 599c4ac1 \z
    db2fa153 4bad4841 f5c13d20 f8f0dd0e 5ed517ae 5a36e4cd 184314cc f084dff3",
  ["looped_bfs 4 as written"] =
    "cf4b7403 35f9e128 fca918a5 48f9e177 9bcca005 437f6473 f979834b 25201c6f \z
    bebdfbef dcf1cd9f 58a37a69 a826d400 0ff213e6 5b1623ca b82d6eca 15331c8d",
  ["looped_bfs 4 always"] =
    "fa3c6e90 d9332595 97596644 9f3a2fc2 029119ea ff813638 052637d1 24232168 \z
    24fe70ec 3da843f3 35ad1515 ae796f9c 1f465c58 ae4a7682 53786286 33c74968",
  ["looped_bfs 4 except_last"] =
    "cf4b7403 6b0ab842 fe17cac6 728cbcb6 42f66ba8 20c94e67 43991c4c 8111eb8d \z
    086809ed fb82ece9 de434fdc cb89b38a 0a6acd4f c9e4506b d100e160 4fc9d4b6",
  ["looped_bfs 8 as written"] =
    "9d651720 725b3516 1fb91f5e d3239e9a 853b7880 805f3806 1790b216 a77ac29f \z
    32b78d91 4e471074 fe970047 f6761f3a 7e3b919f 6eed9616 0778c480 a94cf701",
  ["looped_bfs 8 always"] =
    "c2274611 c521c82f e990531a 3924dccf 9880c94f 0a477b9a 7f9f9dd9 c5c7062b \z
    fbbda8df c332e168 150d4599 3bca1cba 06fb7ae1 d26212f4 c100a6d9 b57aca15",
  ["looped_bfs 8 except_last"] =
    "9d651720 4b95326e 20ff067f 1bb5f622 184d44ca 3140a2ba 01645352 c5a972fe \z
    a4b924e7 d3b90e1a 29bd378f 3dd05351 081ed67c 49758eac 70ee20b5 4e96c975",
  ["naive 1 as written"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["naive 1 always"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["naive 1 except_last"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["naive 2 as written"] =
    "75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf \z
    75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf",
  ["naive 2 always"] =
    "75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf \z
    75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf",
  ["naive 2 except_last"] =
    "75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf \z
    75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf 75a3aeaf",
  ["naive 3 as written"] =
    "db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 \z
    db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37",
  ["naive 3 always"] =
    "db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 \z
    db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37",
  ["naive 3 except_last"] =
    "db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 \z
    db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37 db352f37",
  ["naive 4 as written"] =
    "7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c \z
    7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c",
  ["naive 4 always"] =
    "7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c \z
    7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c",
  ["naive 4 except_last"] =
    "7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c \z
    7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c 7bcff52c",
  ["naive 8 as written"] =
    "1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f \z
    1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f",
  ["naive 8 always"] =
    "1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f \z
    1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f",
  ["naive 8 except_last"] =
    "1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f \z
    1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f 1f8c8f1f",
  ["pipedream 1 as written"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["pipedream 1 always"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["pipedream 1 except_last"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["pipedream 2 as written"] =
    "75a3aeaf 761af3ea f88a00b5 edb987ca 81163ed6 1353a353 dae780db 1cb8da2a \z
    cb529923 a262f9ac 89ec2d70 2de32cf1 3b0b7177 f60155ee a0eb1f98 74662895",
  ["pipedream 2 always"] =
    "75a3aeaf 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 \z
    1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1",
  ["pipedream 2 except_last"] =
    "75a3aeaf 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 \z
    1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1 1baa8cc1",
  ["pipedream 3 as written"] =
    "db352f37 b6ad2985 bdd5152a 3b1f2f5a b987dbe0 d3dbc217 1ec1e967 20c8e612 \z
    4840454c e6fe4e0e 3bd4425e f3da85d9 5a40ef51 bcdc950c 12c18e5a 9388ca24",
  ["pipedream 3 always"] =
    "db352f37 ffb926bc 6b2a6063 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 \z
    31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2",
  ["pipedream 3 except_last"] =
    "db352f37 ffb926bc 6b2a6063 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 \z
    31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2 31b07ea2",
  ["pipedream 4 as written"] =
    "7bcff52c 8b62fdb0 f21573d0 1abed9be 6a917d20 276f81e2 4591bcd8 32ca098e \z
    8f937778 d102f68b 968925a6 b4ea07f2 404af37d 8c6a0bb1 e620b818 7d74af3a",
  ["pipedream 4 always"] =
    "7bcff52c dd8e9216 7c163a9f b48fb7e3 0a324982 49110115 49110115 49110115 \z
    49110115 49110115 49110115 49110115 49110115 49110115 49110115 49110115",
  ["pipedream 4 except_last"] =
    "7bcff52c dd8e9216 7c163a9f b48fb7e3 0a324982 49110115 49110115 49110115 \z
    49110115 49110115 49110115 49110115 49110115 49110115 49110115 49110115",
  ["pipedream 8 as written"] =
    "1f8c8f1f 93307155 0507176b 3d8a2005 6bb7e882 ec6ed6bc 0f47e139 63f1c279 \z
    59a1c29f be507eff e75af0aa 3cf843f8 368b895e cf2e5ed9 f00e9efe 3bd8be9d",
  ["pipedream 8 always"] =
    "1f8c8f1f 70e303ad e85529be 7ec1ad42 27089b58 78c5526a 1fb4c159 972b510f \z
    5e8228f0 572d4eb1 969d7107 c3d0ce61 f8dbf744 74ade27b 74ade27b 74ade27b",
  ["pipedream 8 except_last"] =
    "1f8c8f1f 70e303ad e85529be 7ec1ad42 27089b58 78c5526a 1fb4c159 972b510f \z
    5e8228f0 572d4eb1 969d7107 c3d0ce61 f8dbf744 74ade27b 74ade27b 74ade27b",
  ["pipedream_2bw 1 as written"] =
    "a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 \z
    a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9",
  ["pipedream_2bw 1 always"] =
    "a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 \z
    a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9",
  ["pipedream_2bw 1 except_last"] =
    "a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 \z
    a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9 a1adf7f9",
  ["pipedream_2bw 2 as written"] =
    "785ccb6e 26d2f184 17796b54 dc5efc72 6ad48875 18d032c1 06b483c0 48651da7 \z
    fd22140e e07aa494 802001a3 86c822db 1904c695 d0fec32d c6752221 624983c1",
  ["pipedream_2bw 2 always"] =
    "8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 \z
    8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76",
  ["pipedream_2bw 2 except_last"] =
    "8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 \z
    8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76 8ac87c76",
  ["pipedream_2bw 3 as written"] =
    "32e1af02 63319386 a7dee51f 303c308c 77386e01 026daaa7 a74ed383 25507bf6 \z
    d7ff8549 eaca942f 3536191f eaf114ab a23bb3d4 f7ff879d 34408c55 75007eaa",
  ["pipedream_2bw 3 always"] =
    "bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 \z
    bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5",
  ["pipedream_2bw 3 except_last"] =
    "bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 \z
    bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5 bb3530c5",
  ["pipedream_2bw 4 as written"] =
    "bee7cab4 38930af0 4b4e9188 33abbe96 b2ec90a8 b2527b64 19c9b83d 96404b2d \z
    39ca324e 7f195637 0d99ffe4 2613a79d f4ba2334 9ef1591d 063915ea 97c8425f",
  ["pipedream_2bw 4 always"] =
    "f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 \z
    f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7",
  ["pipedream_2bw 4 except_last"] =
    "f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 \z
    f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7 f242b9c7",
  ["pipedream_2bw 8 as written"] =
    "5fa887da 255f8682 be2a723c 67ac4cf7 a27feadb 1aabace8 e42d679b ee107cba \z
    c138d1d1 70be7103 56b38b3d 666150f9 f1c3da68 b71b9f0d e85e1a8e cc6cb105",
  ["pipedream_2bw 8 always"] =
    "57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f \z
    57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f",
  ["pipedream_2bw 8 except_last"] =
    "57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f \z
    57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f 57f0af2f",
  ["v_half 1 as written"] =
    "7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea \z
    7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea",
  ["v_half 1 always"] =
    "3b2d3a84 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 \z
    1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560",
  ["v_half 1 except_last"] =
    "7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea \z
    7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea",
  ["v_half 2 as written"] =
    "689ccb79 38e1fd1c d4015a51 b4bf6fa2 51084961 1603bca0 11ab083f 1f526008 \z
    370734e9 2f183b67 dc9fe373 d0aeb6b6 fb50fcaf b6561aac 7199cd51 98f21d31",
  ["v_half 2 always"] =
    "b48762a2 cf491d1c 51906199 51906199 51906199 51906199 51906199 51906199 \z
    51906199 51906199 51906199 51906199 51906199 51906199 51906199 51906199",
  ["v_half 2 except_last"] =
    "689ccb79 8394a5f0 2749882d 2749882d 2749882d 2749882d 2749882d 2749882d \z
    2749882d 2749882d 2749882d 2749882d 2749882d 2749882d 2749882d 2749882d",
  ["v_half 3 as written"] =
    "23aeb324 5ee7f1c3 210db79b 23786b7e d78eaa9b ca80304c 186be9e3 cf902dec \z
    d32648a4 8e4cecd9 a782099e 3d504079 492877a0 a704fbc9 df868bd4 b497c5b7",
  ["v_half 3 always"] =
    "28530394 b65f51a7 15ab3d46 20b8bc3e 20b8bc3e 20b8bc3e 20b8bc3e 20b8bc3e \z
    20b8bc3e 20b8bc3e 20b8bc3e 20b8bc3e 20b8bc3e 20b8bc3e 20b8bc3e 20b8bc3e",
  ["v_half 3 except_last"] =
    "23aeb324 b65f51a7 2e7da2a4 7a88369c 7a88369c 7a88369c 7a88369c 7a88369c \z
    7a88369c 7a88369c 7a88369c 7a88369c 7a88369c 7a88369c 7a88369c 7a88369c",
  ["v_half 4 as written"] =
    "472ba1af 876e3398 9226224d f7fb1ff9 5a628bdb 32a5dd22 b498c01a 58021ed9 \z
    5d2419f7 e4a65b75 229778ba 39825bc9 790abe09 5c389e17 9cebec86 b8344904",
  ["v_half 4 always"] =
    "1450abea 374d4a0e 34c9f2e2 34c9f2e2 315ef87d b2e4c0ca b2e4c0ca b2e4c0ca \z
    b2e4c0ca b2e4c0ca b2e4c0ca b2e4c0ca b2e4c0ca b2e4c0ca b2e4c0ca b2e4c0ca",
  ["v_half 4 except_last"] =
    "472ba1af 374d4a0e fee7c3df fee7c3df 23788760 2660bd1a 2660bd1a 2660bd1a \z
    2660bd1a 2660bd1a 2660bd1a 2660bd1a 2660bd1a 2660bd1a 2660bd1a 2660bd1a",
  ["v_half 8 as written"] =
    "d609ceff e61b6bf7 ddf548bc 656217c7 79d8370d 4543a54b 61f7599c 3b0e5356 \z
    6e001428 0d38e5c1 2f121581 171a40d4 4f55c0e3 278ea44f d902f8a1 5ded67ba",
  ["v_half 8 always"] =
    "f714b0bd 2801603e 16b25ce5 71504fe6 58c0cc05 8771855a 5155bd81 e03b6341 \z
    6d9ca083 7e4b41f1 7e4b41f1 7e4b41f1 7e4b41f1 7e4b41f1 7e4b41f1 7e4b41f1",
  ["v_half 8 except_last"] =
    "d609ceff 2801603e 16b25ce5 71504fe6 ea1586aa 2474b6e9 8ae80b8f 5a3d0d1e \z
    cc8a115a 9826a273 9826a273 9826a273 9826a273 9826a273 9826a273 9826a273",
  ["v_min 1 as written"] =
    "7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea \z
    7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea",
  ["v_min 1 always"] =
    "1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 \z
    1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560 1612c560",
  ["v_min 1 except_last"] =
    "7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea \z
    7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea 7e50d9ea",
  ["v_min 2 as written"] =
    "689ccb79 e6d04694 c9f0f2f9 cc2fd040 e6487a80 f3f41dff 00da798f 46478720 \z
    aa494d7f 7e2f7714 4cdb1484 cd1e97e5 cf697e33 836df73e 273558b8 32ec78d9",
  ["v_min 2 always"] =
    "19b19937 6da9063e 6da9063e 6da9063e 6da9063e 6da9063e 6da9063e 6da9063e \z
    6da9063e 6da9063e 6da9063e 6da9063e 6da9063e 6da9063e 6da9063e 6da9063e",
  ["v_min 2 except_last"] =
    "689ccb79 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 \z
    6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7 6adc0fa7",
  ["v_min 3 as written"] =
    "23aeb324 5ee7f1c3 d5e19677 d64d3694 ba608ea2 9cbc84ad a96b83e1 e07c2aba \z
    d527e603 5f7acffa 24ab82de 0dcf90e3 11f5ada7 5bf65d88 43dee124 25a03ba7",
  ["v_min 3 always"] =
    "93b70371 fc64efb7 baa89f81 e086e433 e086e433 e086e433 e086e433 e086e433 \z
    e086e433 e086e433 e086e433 e086e433 e086e433 e086e433 e086e433 e086e433",
  ["v_min 3 except_last"] =
    "23aeb324 73a3ed17 321a4f9e 8ea18c7b 8ea18c7b 8ea18c7b 8ea18c7b 8ea18c7b \z
    8ea18c7b 8ea18c7b 8ea18c7b 8ea18c7b 8ea18c7b 8ea18c7b 8ea18c7b 8ea18c7b",
  ["v_min 4 as written"] =
    "472ba1af 876e3398 d156978a 5dea5147 41ae79d1 a3f0f4d4 1b38f40c 25300ea1 \z
    e4ff9b3b 6ff92695 5d926f04 c80f9b87 091b6875 c78ee2da 568abaa2 305cf154",
  ["v_min 4 always"] =
    "525525ed d75eb276 dc75fbb3 ee7f740b ee7f740b ee7f740b ee7f740b ee7f740b \z
    ee7f740b ee7f740b ee7f740b ee7f740b ee7f740b ee7f740b ee7f740b ee7f740b",
  ["v_min 4 except_last"] =
    "472ba1af d75eb276 073083de ed1b8926 ed1b8926 ed1b8926 ed1b8926 ed1b8926 \z
    ed1b8926 ed1b8926 ed1b8926 ed1b8926 ed1b8926 ed1b8926 ed1b8926 ed1b8926",
  ["v_min 8 as written"] =
    "d609ceff e61b6bf7 ddf548bc 854fa60e d171563f 89be0de0 1aa40119 aca72888 \z
    7ef893ff aad7bb30 fa7d5c16 a2d9f302 195ef38a 53df7dd3 2503d5ad 56e20dd2",
  ["v_min 8 always"] =
    "c6ff4749 c6ff4749 cb1c00a6 2491788f bf4865d3 9d85bb5b 12e76c75 12e76c75 \z
    12e76c75 12e76c75 12e76c75 12e76c75 12e76c75 12e76c75 12e76c75 12e76c75",
  ["v_min 8 except_last"] =
    "d609ceff c6ff4749 cb1c00a6 a03b2206 bf4865d3 efb21118 12e76c75 12e76c75 \z
    12e76c75 12e76c75 12e76c75 12e76c75 12e76c75 12e76c75 12e76c75 12e76c75",
  ["zb_auto 1 as written"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_auto 1 always"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_auto 1 except_last"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_auto 2 as written"] =
    "75a3aeaf d73c8b52 d3d7426a e05c4ce6 2457f9a2 c8e6d60e 3adf499e c628f066 \z
    1149174e 3bf8fea4 87362cd8 5f7e7a2a 75e04bf6 c8800e98 0e4b10cc ab7ae2ca",
  ["zb_auto 2 always"] =
    "75a3aeaf 249c0e7f 07861158 b42f2d53 57dc6f4f 90322562 291de36e ac3c575b \z
    d7e34aae 11806c5f a3a2b4bf 7a427118 0f42a3ba 481caffd b36542b3 6ae70642",
  ["zb_auto 2 except_last"] =
    "75a3aeaf 249c0e7f 07861158 b42f2d53 57dc6f4f 90322562 291de36e ac3c575b \z
    d7e34aae 11806c5f a3a2b4bf 7a427118 0f42a3ba 481caffd b36542b3 6ae70642",
  ["zb_auto 3 as written"] =
    "db352f37 98cb6a3b daea54f4 752e744e aabd8fc6 276b795c 5180d8f8 0b80a788 \z
    f3c7faab 176acf96 0f00410e bb8c9c7c 83f029d4 269f612e 7f568f04 79346101",
  ["zb_auto 3 always"] =
    "db352f37 0369c5c3 dd25373b a6ee956b b966d7e9 70814900 10593878 c109db07 \z
    c53cccb9 984219e3 b5cd18eb 7d52763a 48a3a0f0 f7411dd1 deec092b 199ec11d",
  ["zb_auto 3 except_last"] =
    "db352f37 0369c5c3 dd25373b a6ee956b b966d7e9 70814900 10593878 c109db07 \z
    c53cccb9 984219e3 b5cd18eb 7d52763a 48a3a0f0 f7411dd1 deec092b 199ec11d",
  ["zb_auto 4 as written"] =
    "7bcff52c fd61de66 c08088f3 0fabacd5 02f12eda 22113d1a 27b6fdda 1f0c4c72 \z
    f2b5a03e 1f46d752 c3223ce6 185f605a 09db5156 bc75a4b2 3093e32a 57da1c26",
  ["zb_auto 4 always"] =
    "7bcff52c 78042482 b5fa486a ee4dd8f6 52d8074f be3e070a 78f160fc 4cb39b48 \z
    3ce20290 4cbfe6a5 9ff48c56 7c486ada 84b327fb 9df5d573 c29cf518 2d776f52",
  ["zb_auto 4 except_last"] =
    "7bcff52c 78042482 b5fa486a ee4dd8f6 52d8074f be3e070a 78f160fc 4cb39b48 \z
    3ce20290 4cbfe6a5 9ff48c56 7c486ada 84b327fb 9df5d573 c29cf518 2d776f52",
  ["zb_auto 8 as written"] =
    "1f8c8f1f 92a357a9 d7ee9043 7a7ed046 ced3c11e 84761b9e a5b521d8 018a1bbe \z
    ff05e414 138a82dc 1d724cfc ff4e476c 5221656c 6c6638d4 3a09c1e4 37d4c1ec",
  ["zb_auto 8 always"] =
    "1f8c8f1f 1b1230b6 5499c723 b4f3c456 f72d160d e1052ba6 02eb5514 45e3d4ad \z
    ff838408 c475f837 f3287310 19b51706 12d25a73 8f54f419 c36ef690 4b5f732f",
  ["zb_auto 8 except_last"] =
    "1f8c8f1f 1b1230b6 5499c723 b4f3c456 f72d160d e1052ba6 02eb5514 45e3d4ad \z
    ff838408 c475f837 f3287310 19b51706 12d25a73 8f54f419 c36ef690 4b5f732f",
  ["zb_h1 1 as written"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_h1 1 always"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_h1 1 except_last"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_h1 2 as written"] =
    "75a3aeaf d73c8b52 d3d7426a e05c4ce6 2457f9a2 c8e6d60e 3adf499e c628f066 \z
    1149174e 3bf8fea4 87362cd8 5f7e7a2a 75e04bf6 c8800e98 0e4b10cc ab7ae2ca",
  ["zb_h1 2 always"] =
    "75a3aeaf 249c0e7f 07861158 b42f2d53 57dc6f4f 90322562 291de36e ac3c575b \z
    d7e34aae 11806c5f a3a2b4bf 7a427118 0f42a3ba 481caffd b36542b3 6ae70642",
  ["zb_h1 2 except_last"] =
    "75a3aeaf 249c0e7f 07861158 b42f2d53 57dc6f4f 90322562 291de36e ac3c575b \z
    d7e34aae 11806c5f a3a2b4bf 7a427118 0f42a3ba 481caffd b36542b3 6ae70642",
  ["zb_h1 3 as written"] =
    "db352f37 98cb6a3b b1960abe 752e744e aabd8fc6 276b795c 5180d8f8 0b80a788 \z
    f3c7faab 176acf96 0f00410e bb8c9c7c 83f029d4 269f612e 7f568f04 79346101",
  ["zb_h1 3 always"] =
    "db352f37 0f8e48b7 9d590c74 a6ee956b b966d7e9 70814900 10593878 c109db07 \z
    c53cccb9 984219e3 b5cd18eb 7d52763a 48a3a0f0 f7411dd1 deec092b 199ec11d",
  ["zb_h1 3 except_last"] =
    "db352f37 0f8e48b7 9d590c74 a6ee956b b966d7e9 70814900 10593878 c109db07 \z
    c53cccb9 984219e3 b5cd18eb 7d52763a 48a3a0f0 f7411dd1 deec092b 199ec11d",
  ["zb_h1 4 as written"] =
    "7bcff52c fd61de66 dbb3cf2f ae2c8256 02f12eda 22113d1a 27b6fdda 1f0c4c72 \z
    f2b5a03e 1f46d752 c3223ce6 185f605a 09db5156 bc75a4b2 3093e32a 57da1c26",
  ["zb_h1 4 always"] =
    "7bcff52c fb9ed84e 83bce659 dbf72696 52d8074f be3e070a 78f160fc 4cb39b48 \z
    3ce20290 4cbfe6a5 9ff48c56 7c486ada 84b327fb 9df5d573 c29cf518 2d776f52",
  ["zb_h1 4 except_last"] =
    "7bcff52c fb9ed84e 83bce659 dbf72696 52d8074f be3e070a 78f160fc 4cb39b48 \z
    3ce20290 4cbfe6a5 9ff48c56 7c486ada 84b327fb 9df5d573 c29cf518 2d776f52",
  ["zb_h1 8 as written"] =
    "1f8c8f1f 92a357a9 bdfcfeaa d4a1c4fe 63415a99 e9e37ca7 14e5d679 83a4d7ac \z
    ff05e414 138a82dc 1d724cfc ff4e476c 5221656c 6c6638d4 3a09c1e4 37d4c1ec",
  ["zb_h1 8 always"] =
    "1f8c8f1f 17ff0848 ce9513be bf198529 7898669a f7e79df6 e3de9979 3cc435e3 \z
    ff838408 c475f837 f3287310 19b51706 12d25a73 8f54f419 c36ef690 4b5f732f",
  ["zb_h1 8 except_last"] =
    "1f8c8f1f 17ff0848 ce9513be bf198529 7898669a f7e79df6 e3de9979 3cc435e3 \z
    ff838408 c475f837 f3287310 19b51706 12d25a73 8f54f419 c36ef690 4b5f732f",
  ["zb_h2 1 as written"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_h2 1 always"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_h2 1 except_last"] =
    "84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f \z
    84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f 84bc306f",
  ["zb_h2 2 as written"] =
    "75a3aeaf d73c8b52 101e46ef 1d676487 5d1c8f25 b7436a47 acd93c37 c0cee835 \z
    ae0e95c9 80ab62a3 4a0d4c63 0a675003 8859d4a1 70fc312f df25efe9 085ff4d5",
  ["zb_h2 2 always"] =
    "75a3aeaf 249c0e7f 3da15389 43c43d19 389b3c09 77972d13 5848358f 1528b4ab \z
    ee93fdb4 982fc635 9ac7ec25 51f044cb da57bde7 7c4985d5 70037407 85f3df10",
  ["zb_h2 2 except_last"] =
    "75a3aeaf 249c0e7f 3da15389 43c43d19 389b3c09 77972d13 5848358f 1528b4ab \z
    ee93fdb4 982fc635 9ac7ec25 51f044cb da57bde7 7c4985d5 70037407 85f3df10",
  ["zb_h2 3 as written"] =
    "db352f37 98cb6a3b daea54f4 7606e9d7 7d9e770b 2d52e633 9b1303d9 dc3975b4 \z
    35a2f142 27daa8fd 5d39b3d4 ee760916 edfc9a0e 443aeeba 6fe4d4ca 6be309b4",
  ["zb_h2 3 always"] =
    "db352f37 0f8e48b7 acb23289 ae84c893 c81539d2 14cabff0 320bb012 7af3f21d \z
    c749e7b6 c4116b68 fefc8b93 17cf599d 20c4309f b9fdcd4b dafaafaf b7880acc",
  ["zb_h2 3 except_last"] =
    "db352f37 0f8e48b7 acb23289 ae84c893 c81539d2 14cabff0 320bb012 7af3f21d \z
    c749e7b6 c4116b68 fefc8b93 17cf599d 20c4309f b9fdcd4b dafaafaf b7880acc",
  ["zb_h2 4 as written"] =
    "7bcff52c fd61de66 c08088f3 0fabacd5 88fd1e18 7a7bc592 48fdcad0 4c10124c \z
    77f3f74c eaf7ad8c bfc6ac2c acb8a60c d31e5a7c fec11560 8d0f976c 62597518",
  ["zb_h2 4 always"] =
    "7bcff52c fb9ed84e d49305ec 1bdad34e e8b96563 73ded863 63217645 abc5a125 \z
    f9910cd2 755c7ec0 2d89925c d07bf1fb 682d3b71 f9d0fdae d10e668f 74092df1",
  ["zb_h2 4 except_last"] =
    "7bcff52c fb9ed84e d49305ec 1bdad34e e8b96563 73ded863 63217645 abc5a125 \z
    f9910cd2 755c7ec0 2d89925c d07bf1fb 682d3b71 f9d0fdae d10e668f 74092df1",
  ["zb_h2 8 as written"] =
    "1f8c8f1f 92a357a9 d7ee9043 7a7ed046 ced3c11e 84761b9e a5b521d8 018a1bbe \z
    f5cceda8 128cebca a98e9331 6e56cdd4 13ffde41 7318d633 fe900e15 119dd265",
  ["zb_h2 8 always"] =
    "1f8c8f1f 17ff0848 83210d43 a4f924a1 7cec6276 efa16b34 6c09fe37 7b687342 \z
    6a34ec9d 873f42b4 296b8a50 cadaf60f b45d924e b69d4683 1f0a91d2 8d4c8693",
  ["zb_h2 8 except_last"] =
    "1f8c8f1f 17ff0848 83210d43 a4f924a1 7cec6276 efa16b34 6c09fe37 7b687342 \z
    6a34ec9d 873f42b4 296b8a50 cadaf60f b45d924e b69d4683 1f0a91d2 8d4c8693",
  ["zbv 1 as written"] =
    "7e50d9ea 6b932f3b 931b748a 84a868c7 4afe78c7 1c6928a0 0123ec1c cbf2dfb7 \z
    3e77391c 52aeb0bf 8709835f 9e9bfb6a ae069658 9e006dad 033adecb 73041c14",
  ["zbv 1 always"] =
    "1612c560 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 \z
    3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84",
  ["zbv 1 except_last"] =
    "7e50d9ea 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 \z
    3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84 3b2d3a84",
  ["zbv 2 as written"] =
    "689ccb79 aaa7370c 77be9a65 be8a7ecb 8d430510 6e9001d9 cbe94b77 3ab1a6a5 \z
    1afbd827 1a0474a4 cc9f2e75 7754c541 4b07a25e 1ded642a f7fbc39f c0782a99",
  ["zbv 2 always"] =
    "19b19937 d11116c8 548380ed 548380ed 548380ed 548380ed 548380ed 548380ed \z
    548380ed 548380ed 548380ed 548380ed 548380ed 548380ed 548380ed 548380ed",
  ["zbv 2 except_last"] =
    "689ccb79 d11116c8 548380ed 548380ed 548380ed 548380ed 548380ed 548380ed \z
    548380ed 548380ed 548380ed 548380ed 548380ed 548380ed 548380ed 548380ed",
  ["zbv 3 as written"] =
    "23aeb324 602a3419 da9d3c27 fb6ad533 211044ca dd547e7e 92438323 fa12dd56 \z
    09735e3e 31d5c7ff d68b012d 4c7a4cf7 1f17c781 9bafbffa 518e701a bf53c98d",
  ["zbv 3 always"] =
    "93b70371 991c0c48 bc961acc 2771e9ac 01b14ea4 01b14ea4 01b14ea4 01b14ea4 \z
    01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4",
  ["zbv 3 except_last"] =
    "23aeb324 991c0c48 bc961acc 2771e9ac 01b14ea4 01b14ea4 01b14ea4 01b14ea4 \z
    01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4 01b14ea4",
  ["zbv 4 as written"] =
    "472ba1af 22a0ecde d240bc64 300f5361 c3a4c74c 1234c911 5cfc073e 1017f102 \z
    b059d505 4dd2851a 5ce7429f 71ba58fb 7619d682 5af68d26 6d31ea37 faded32a",
  ["zbv 4 always"] =
    "525525ed 2628083c 0d2d49f0 73145710 fe392d65 7f06c868 69b499ed 69b499ed \z
    69b499ed 69b499ed 69b499ed 69b499ed 69b499ed 69b499ed 69b499ed 69b499ed",
  ["zbv 4 except_last"] =
    "472ba1af 2628083c 0d2d49f0 73145710 fe392d65 7f06c868 69b499ed 69b499ed \z
    69b499ed 69b499ed 69b499ed 69b499ed 69b499ed 69b499ed 69b499ed 69b499ed",
  ["zbv 8 as written"] =
    "d609ceff e2121935 d10fb53d 0d7d0f3e 1121f050 2c15ee2d 629c3fb3 6a684279 \z
    05737358 311f35f6 45b6d033 f553a97f 05479e3c 35471b87 50d7b6fb 26587985",
  ["zbv 8 always"] =
    "c6ff4749 c5641ad1 4bcb2613 898675d7 d0628889 9fbae802 dcfa9dda b8f33559 \z
    e6d69815 67ae6f8c e9666426 af20ae65 975ebd59 a919e520 c91ec13f c91ec13f",
  ["zbv 8 except_last"] =
    "d609ceff c5641ad1 4bcb2613 898675d7 d0628889 9fbae802 dcfa9dda b8f33559 \z
    e6d69815 67ae6f8c e9666426 af20ae65 975ebd59 a919e520 c91ec13f c91ec13f",
}
