//! The many ways in which people write down a secret: what is told, and the parts of it that must not survive.

use super::*;

type Form = (&'static str, &'static [&'static str]);

#[rustfmt::skip]
const FORMS: &[Form] = &[
    // Several of them, or another one later.
    ("My passwords are hunter2 and swordfish.", &["hunter2", "swordfish"]),
    ("The passwords are alpha, bravo and charlie", &["alpha", "bravo", "charlie"]),
    ("passwords are hunter2 and swordfish", &["hunter2", "swordfish"]),
    ("My password is hunter2 or swordfish9.", &["hunter2", "swordfish9"]),
    ("passwords: hunter2, swordfish", &["hunter2", "swordfish"]),
    ("My password was hunter2, the new one is swordfish", &["hunter2", "swordfish"]),
    ("The password is hunter2. The old one was open5esame, the other one is swordfish.", &["hunter2", "open5esame", "swordfish"]),
    ("My password was hunter2 but I changed it to swordfish!", &["hunter2", "swordfish"]),
    ("the wifi password used to be hunter2, now it's swordfish9", &["hunter2", "swordfish9"]),
    ("我的密码是hunter2，新的是swordfish", &["hunter2", "swordfish"]),
    ("旧密码是小猫吃鱼，新的是小狗吃肉。", &["小猫吃鱼", "小狗吃肉"]),
    ("密码分别是hunter2和swordfish9", &["hunter2", "swordfish9"]),
    ("密码是hunter2，后来改成swordfish了", &["hunter2", "swordfish"]),
    // Signs, dashes, quotes.
    ("password is: \"quoted value\"", &["quoted value"]),
    ("My password is still \"two words\"", &["two words"]),
    ("the password is always hunter2", &["hunter2"]),
    ("Password - swordfish", &["swordfish"]),
    ("User - bob, Password — swordfish", &["swordfish"]),
    ("password -> swordfish", &["swordfish"]),
    ("Password for alice@example.com: swordfish", &["swordfish"]),
    ("the password (for the bank) is swordfish", &["swordfish"]),
    ("Our password in staging will be swordfish", &["swordfish"]),
    ("Password: correct horse battery staple", &["correct", "horse", "staple"]),
    ("| password | swordfish |", &["swordfish"]),
    ("<password>swordfish</password>", &["swordfish"]),
    ("{\\\"password\\\": \\\"swordfish\\\"}", &["swordfish"]),
    ("{\"password\": \"open\\\"sesame\"}", &["open", "sesame"]),
    ("my password, hunter22, stopped working", &["hunter22"]),
    ("the password (hunter22) is old", &["hunter22"]),
    ("I changed my password to swordfish.", &["swordfish"]),
    ("swordfish is my password.", &["swordfish"]),
    ("use swordfish as the password", &["swordfish"]),
    ("The password is the same as before: hunter22", &["hunter22"]),
    // Short names, names of variables.
    ("user=bob pass=swordfish", &["swordfish"]),
    ("login bob, pass: swordfish", &["swordfish"]),
    ("pw swordfish", &["swordfish"]),
    ("my pw is swordfish", &["swordfish"]),
    ("pw: swordfish", &["swordfish"]),
    ("PGPASSWORD=swordfish psql", &["swordfish"]),
    ("\"dbPassword\": \"swordfish\"", &["swordfish"]),
    ("clientSecret=a1b2c3d4e5", &["a1b2c3d4e5"]),
    ("SECRET_KEY_BASE=4fa09b1c2d3e", &["4fa09b1c2d3e"]),
    ("AccountKey=abc123def456ghi789==", &["abc123def456ghi789"]),
    ("cvv 123", &["123"]),
    ("PIN码是1234", &["1234"]),
    ("his passcode is 1234 and hers is 5678", &["1234", "5678"]),
    ("I think my password might be hunter2", &["hunter2"]),
    ("The door code is 4711.", &["4711"]),
    // Commands.
    ("curl -u bob:swordfish https://example.com", &["swordfish"]),
    ("`curl --user 'bob:sword fish' https://example.com`", &["sword", "fish"]),
    ("$ curl -ubob:swordfish example.com", &["swordfish"]),
    ("mysql -uroot -pswordfish shop", &["swordfish"]),
    ("/usr/bin/mysqldump -p'sword fish' shop > x.sql", &["sword", "fish"]),
    ("sshpass -p swordfish ssh bob@example.com", &["swordfish"]),
    ("sshpass -pswordfish ssh bob@example.com", &["swordfish"]),
    ("docker login -u bob -p swordfish", &["swordfish"]),
    ("redis-cli -a swordfish ping", &["swordfish"]),
    ("smbclient //host/share -U bob%swordfish", &["swordfish"]),
    // Addresses.
    ("https://bob:swordfish@example.com/x", &["swordfish"]),
    ("git clone https://x0x1x2x3x4x5x6x7x8x9xx@example.com/r.git", &["x0x1x2x3x4x5x6x7x8x9xx"]),
    ("https://hooks.slack.com/services/T0000/B0000/XXXXyyyy", &["T0000", "XXXXyyyy"]),
    ("https://discord.com/api/webhooks/1234567890/aBcDeFgHiJ", &["1234567890", "aBcDeFgHiJ"]),
    ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=0a1b2c3d-4e5f", &["0a1b2c3d"]),
    ("https://s3.example.com/f?X-Amz-Signature=0a1b2c3d4e5f", &["0a1b2c3d4e5f"]),
    // Codes and phrases.
    ("My recovery codes are:\n1. a1b2-c3d4\n2. e5f6-g7h8\n", &["a1b2", "g7h8"]),
    ("recovery codes for GitHub: 12345-67890, abcde-fghij", &["12345", "fghij"]),
    ("Your verification code is 483920.", &["483920"]),
    ("OTP: 483920", &["483920"]),
    ("验证码：483920，请勿告诉他人", &["483920"]),
    ("备用码是 1a2b3c4d 和 5e6f7g8h", &["1a2b3c4d", "5e6f7g8h"]),
    ("seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow", &["legal", "sausage", "yellow"]),
    ("My seed phrase for the wallet is \"legal winner thank year wave sausage worth useful legal winner thank yellow\" ok", &["legal", "yellow"]),
    ("mnemonic:\n1. legal\n2. winner\n3. thank\n4. year\n5. wave\n6. sausage\n7. worth\n8. useful\n9. legal\n10. winner\n11. thank\n12. yellow", &["legal", "yellow"]),
    ("助记词：的 一 是 在 不 了 有 和 人 这 中 大", &["的 一", "中 大"]),
    // Chinese names.
    ("密钥是abcdefgh", &["abcdefgh"]),
    ("密钥：sk9f8e7d6c", &["sk9f8e7d6c"]),
    ("口令是芝麻开门", &["芝麻开门"]),
    ("我把WiFi密码改成了swordfish", &["swordfish"]),
    ("密码就用hunter2吧", &["hunter2"]),
    ("密碼是hunter2", &["hunter2"]),
    ("账号/密码：bob/swordfish", &["swordfish"]),
    // Full-width and invisible characters.
    ("ｐａｓｓｗｏｒｄ：ｈｕｎｔｅｒ２", &["ｈｕｎｔｅｒ２"]),
    ("密码：１２３４５６", &["１２３４５６"]),
    ("pass\u{200b}word: swordfish", &["swordfish"]),
    // Numbers.
    ("4111  1111  1111  1111", &["4111"]),
    ("card 4111 - 1111 - 1111 - 1111 exp 12/28", &["1111"]),
    ("４１１１　１１１１　１１１１　１１１１", &["４１１１", "１１１１"]),
    ("４１１１－１１１１－１１１１－１１１１", &["１１１１"]),
    ("4111.1111.1111.1111", &["1111"]),
    ("12/25 4111 1111 1111 1111 123", &["4111", "1111"]),
    ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", &["4 1 1"]),
    ("amex 3782 822463 10005", &["822463"]),
    ("my IBAN is DE89 3704 0044 0532 0130 00", &["3704", "0130"]),
    ("IBAN: GB82WEST12345698765432", &["WEST12345698765432"]),
];

fn forms() -> Vec<(String, Vec<&'static str>)> {
    let mut all: Vec<(String, Vec<&'static str>)> = FORMS
        .iter()
        .map(|(text, secrets)| ((*text).to_owned(), secrets.to_vec()))
        .collect();
    let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    all.push((
        format!("AKIA{}\n{secret}", "IOSFODNN7EXAMPLE"),
        vec![secret],
    ));
    all.push((
        format!("id AKIA{}, key {secret}.", "IOSFODNN7EXAMPLE"),
        vec![secret],
    ));
    all.push((
        format!("bot 123456789:{}", "AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"),
        vec!["AAEhBOweik6ad9r"],
    ));
    all
}

#[test]
fn no_form_of_a_secret_survives() {
    let leaks: Vec<String> = forms()
        .into_iter()
        .map(|(text, secrets)| (redact(&text).text, text, secrets))
        .filter(|(redacted, _, secrets)| {
            secrets.iter().any(|secret| redacted.contains(secret))
                || redact(redacted).text != *redacted
        })
        .map(|(redacted, text, _)| format!("{text} → {redacted}"))
        .collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

fn unchanged(texts: &[&str]) {
    let changed: Vec<String> = texts
        .iter()
        .map(|text| redact(text).text)
        .zip(texts)
        .filter(|(redacted, text)| redacted != *text)
        .map(|(redacted, text)| format!("{text} → {redacted}"))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn counts_and_code_are_no_secrets() {
    unchanged(&[
        "[[usage: tokens=10]]",
        "max_tokens: 4096",
        "tokens: 128,000",
        "It used 5000 tokens, 2000 of them for the answer.",
        "token 12 of 40",
        "token_count=1000",
        "password_min_length=8",
        "pin_memory=True",
        "pass: 10, fail: 2",
        "pass=10 fail=0",
        "connect pin 13 to ground",
        "pin: 13",
        "password=${DB_PASSWORD}",
        "password: <your-password>",
        "token = get_token()",
        "const SERVER: Token = Token(0);",
        "fn hash(password: &str, salt: &str) {",
        "sync: docs of `CancellationToken::run_until_cancelled` ([#7462])",
        "poll for a new token ([#2004])",
        "{\"token\":\"What I know about you:\"}",
        "token: i32,",
        "macros: the variant that pins ([#2274]).",
        "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1",
        "struct_token: Token![struct],",
        "fn verify_password(&self, username: &str)",
        "assert!(verify(\"alice\", \"wrong password\").is_err());",
        "its password is updated when one exists",
        "Basic Structure of a client: basic send/yield",
        "it is not allowed to pass -march=x86-64 there",
        "secret = os.environ",
        "[\"password\", \"username\"]",
        "The password-protected file is there.",
        "token-based authentication is common",
        "\"password\": null",
        "The new one is swordfish.",
        "I reset my password. It was easy.",
        "Passwords are annoying.",
        "signing key: RS256",
        "I use 1Password as my password manager",
        "The API key is stored in 1Password",
        "密钥长度为2048位",
        "验证码 5 分钟内有效",
    ]);
}

#[test]
fn plain_talk_near_the_names_of_secrets_is_left_alone() {
    unchanged(&[
        "curl is nice, and so is -u for users",
        "mysql -p asks for the password",
        "The security code review is on Monday.",
        "The access code is in the letter.",
        "verification codes arrive by mail",
        "a seed phrase has twelve words and nobody should ever type it into a web page that asks for it",
        "助记词是什么？",
        "验证码收不到怎么办",
        "密钥管理很重要",
        "密钥是用来加密的",
        "口令太长了",
        "see https://example.com/?sig=1",
        "Slack webhooks are at https://hooks.slack.com/",
        "years 2019 2020 2021 2022 2023",
        "from 2024-05-02 to 2024-05-03 and 2024-06-02",
        "pi is 3.1415926535897932384",
        "call 555-123-4567 or 555-765-4321",
        "The IBAN is on the card.",
        "We passed: 12 tests, pass rate 98%",
        "My compass=north",
    ]);
}

#[test]
fn what_is_not_secret_keeps_its_form() {
    for (text, wanted) in [
        (
            "ｐａｓｓ　ｔｈｅ　ｓａｌｔ，密码：１２３４５６，ｏｋ",
            "ｐａｓｓ　ｔｈｅ　ｓａｌｔ，密码：[redacted]，ｏｋ",
        ),
        (
            "curl -u bob:swordfish https://example.com",
            "curl -u bob:[redacted] https://example.com",
        ),
        (
            "My password was hunter2, the new one is swordfish.",
            "My password was [redacted], the new one is [redacted].",
        ),
        (
            "My passwords are hunter2 and swordfish.",
            "My passwords are [redacted] and [redacted].",
        ),
        (
            "mysql -uroot -pswordfish shop",
            "mysql -uroot -p[redacted] shop",
        ),
        (
            "https://hooks.slack.com/services/T0/B0/abcdef now",
            "https://hooks.slack.com/services/[redacted] now",
        ),
        (
            "exp 12/25 4111 1111 1111 1111 cvv 123",
            "exp 12/25 [redacted] cvv [redacted]",
        ),
    ] {
        assert_eq!(redact(text).text, wanted);
    }
}

proptest! {
    #[test]
    fn no_form_survives_whatever_stands_around_it(pick in 0_usize..500, before in "[a-z ,.，。]{0,20}[.\n。]", after in "[\n][a-z ,.，。]{0,20}") {
        let forms = forms();
        let (text, secrets) = &forms[pick % forms.len()];
        // Plain words before and after a text of its own lines cannot save a secret.
        let redacted = redact(&format!("{before}\n{text}{after}")).text;
        for secret in secrets {
            prop_assert!(!redacted.contains(secret), "{} → {}", text, redacted);
        }
    }

    #[test]
    fn full_width_text_is_redacted_as_its_ascii_form_is(text in "(password|passwords|pw|pass|token|curl -u | is | are |and |: |=|-|bob:|hunter2|swordfish|4111|1111|[a-z0-9]{1,3}| |\\.){0,24}") {
        let wide: String = text
            .chars()
            .map(|c| match c {
                ' ' => '\u{3000}',
                '!'..='~' => char::from_u32(c as u32 + 0xfee0).unwrap(),
                _ => c,
            })
            .collect();
        let narrow_again: String = redact(&wide)
            .text
            .replace(MARK, "\u{1}")
            .chars()
            .map(|c| match c {
                '\u{3000}' => ' ',
                '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap(),
                _ => c,
            })
            .collect();
        prop_assert_eq!(narrow_again.replace('\u{1}', MARK), redact(&text).text);
    }

    #[test]
    fn any_unicode_is_survived(text in "(\\PC|\\p{Cf}|\\p{M}|[０-９ａ-ｚ＝：]|password|passwords are |pw |pass=|密码是|新的是|curl -u |mysql -p|seed phrase |recovery code|iban |://|@|\"|“|hooks.slack.com/services/|4111|[0-9]{4}|[ -]| one is | and ){0,40}") {
        let once = redact(&text);
        prop_assert_eq!(once.found, once.text != text);
    }
}

/// Each takes milliseconds if parts of the text are looked at a bounded number of times, and minutes if not.
#[test]
fn the_work_on_a_hostile_text_of_any_form_grows_with_its_length_alone() {
    for piece in [
        "令牌是",
        "password-",
        "passwords are ",
        "password, ",
        "otp-",
        "otp ",
        "token(",
        "token_",
        "pw=(",
        "pass=",
        "it is ",
        "password it is ",
        "mnemonic abc ",
        "seed phrase 1 ",
        "iban ",
        "1 ",
        "4111 ",
        "sig=&",
        "?sig=",
        "curl -u ",
        "mysql -p\"",
        "hooks.slack.com/services/",
        "is my password",
        "ＡＫＩＡ",
        "pin码",
        "密码是什么",
        "passwords is the a1 ",
        "eyJ.\u{200b}",
        "a:",
        "M.",
        "password is the ",
        "——",
        "验证码 ",
        "authorization: ",
    ] {
        let text = piece.repeat(80_000 / piece.len());
        assert!(!redact(&text).text.is_empty());
    }
}
