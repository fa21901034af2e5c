#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use proptest::prelude::*;

mod forms;

/// Text and the secret in it. The tokens are put together here so that no scanner takes this file for a leak.
fn samples() -> Vec<(String, String)> {
    let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
    let mut all: Vec<(String, String)> = Vec::new();
    for prefix in [
        "sk-",
        "ghp_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "tmk_",
        "hf_",
        "sk-proj-",
    ] {
        let token = format!("{prefix}{body}");
        all.push((format!("Use {token}, it works."), token.clone()));
        all.push((format!("钥匙{token}给你"), token));
    }
    let aws = format!("AKIA{}", "IOSFODNN7EXAMPLE");
    all.push((format!("key id {aws}."), aws));
    let jwt = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxIn0", "c2lnbmF0dXJl"].join(".");
    all.push((format!("cookie={jwt}"), jwt.clone()));
    all.push((format!("Authorization: Bearer {jwt}"), jwt));
    all.push((
        "curl -H 'bearer abcDEF123456'".to_owned(),
        "abcDEF123456".to_owned(),
    ));
    all.push((
        "Authorization: Basic dXNlcjpwYXNz".to_owned(),
        "dXNlcjpwYXNz".to_owned(),
    ));
    all.push((
        "postgres://app:s3cr@t@db:5432/x".to_owned(),
        "s3cr@t".to_owned(),
    ));
    let pem = format!(
        "-----BEGIN RSA {}-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
        "PRIVATE KEY"
    );
    all.push((format!("here:\n{pem}\nbye"), "MIIEow".to_owned()));
    all.push((format!("cut {}", &pem[..45]), "MIIE".to_owned()));
    for card in [
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "5555555555554444",
        "378282246310005",
        "４１１１１１１１１１１１１１１１",
    ] {
        all.push((format!("my card is {card} thanks"), card.to_owned()));
    }
    for (text, secret) in [
        ("My password is swordfish", "swordfish"),
        (
            "my password is correct horse battery staple.",
            "horse battery",
        ),
        (
            "My password for the bank account is hunter2 and I live in Paris.",
            "hunter2",
        ),
        ("the password's hunter2", "hunter2"),
        ("password: P@ss,w0rd!", "P@ss,w0rd!"),
        ("PASSWORD = \"two words\"", "two words"),
        ("{\"password\": \"hunter2\"}", "hunter2"),
        ("export DB_PASSWORD=hunter", "hunter"),
        ("mysql --password swordfish", "swordfish"),
        ("I changed my password to Hunter2!", "Hunter2"),
        ("hunter2 is my password", "hunter2"),
        ("the wifi password hunter22", "hunter22"),
        ("api_key=abc123def", "abc123def"),
        ("my api key is abc123def456", "abc123def456"),
        (
            "aws_secret_access_key: wJalrXUtnFEMIK7MDENG",
            "wJalrXUtnFEMIK7MDENG",
        ),
        ("client_secret: 8d7f6a", "8d7f6a"),
        ("my pin is 4711", "4711"),
        ("passphrase is open sesame now", "open sesame"),
        ("我的密码是hunter2，请记住", "hunter2"),
        ("密码：123456", "123456"),
        ("密码是小猫爱吃鱼。", "小猫爱吃鱼"),
        ("密码123456", "123456"),
        ("银行卡密码改成654321了", "654321"),
        ("WiFi 密码 是 abc12345", "abc12345"),
        ("123456是我的密码", "123456"),
        ("令牌是 x9y8z7w6", "x9y8z7w6"),
        ("口令为“芝麻开门”", "芝麻开门"),
    ] {
        all.push((text.to_owned(), secret.to_owned()));
    }
    all
}

#[test]
fn no_credential_survives() {
    for (text, secret) in samples() {
        let redacted = redact(&text);
        assert!(redacted.found, "{text}");
        assert!(
            !redacted.text.contains(&secret),
            "{text} → {}",
            redacted.text
        );
        assert!(redacted.text.contains(MARK), "{text}");
    }
}

#[test]
fn what_surrounds_a_credential_stays() {
    assert_eq!(
        redact("我的密码是hunter2，请记住").text,
        "我的密码是[redacted]，请记住"
    );
    assert_eq!(
        redact("My password for the bank is hunter2 and I live in Paris.").text,
        "My password for the bank is [redacted] and I live in Paris."
    );
    assert_eq!(
        redact("postgres://app:pw@db/x").text,
        "postgres://app:[redacted]@db/x"
    );
}

#[test]
fn plain_talk_about_passwords_and_numbers_is_left_alone() {
    for text in [
        "The password is required for login.",
        "the password is wrong when I use Firefox",
        "I forgot my password. What now?",
        "My password manager is new.",
        "What is my password?",
        "This is my password manager",
        "The secret is patience.",
        "The secret to success is work",
        "We use token buckets for rate limits.",
        "the bearer certificate",
        "basic training starts today",
        "Order 1234567890123 was sent at 1714651200000.",
        "sk-learn is nice",
        "密码学很有趣",
        "密码不对",
        "密码是什么？",
        "https://example.com:8080/a@b",
        "My budget is 300k",
        "",
    ] {
        assert_eq!(
            redact(text),
            Redacted {
                text: text.to_owned(),
                found: false
            },
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn a_second_pass_changes_nothing(pick in 0_usize..200, before in "[a-z ，。]{0,20}", after in "[a-z ，。]{0,20}") {
        let samples = samples();
        let (text, _) = &samples[pick % samples.len()];
        let once = redact(&format!("{before} {text} {after}")).text;
        prop_assert_eq!(redact(&once).text, once);
    }

    #[test]
    fn any_text_is_survived(text in "(\\PC|password|密码|是| is |:|://|@|-----BEGIN |PRIVATE KEY|bearer ){0,40}") {
        let once = redact(&text);
        prop_assert_eq!(once.found, once.text != text);
    }
}

/// Each of these took seconds to minutes when parts of a text were looked through again and again.
#[test]
fn the_work_on_a_hostile_text_grows_with_its_length_alone() {
    for (piece, times) in [
        ("password ", 11_000),
        ("password=", 11_000),
        ("password \"", 10_000),
        ("token ", 16_000),
        ("密码是", 33_000),
        ("://a:b", 16_000),
        ("eyJ.", 25_000),
        ("sk-", 33_000),
        ("bearer a", 12_000),
    ] {
        let text = piece.repeat(times);
        assert!(!redact(&text).text.is_empty());
    }
}
