//! The names of credentials.

/// How much a name says about what follows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What is named so is secret whatever it looks like.
    Strong,
    /// The same, and it has no other meaning, so that no verb or sign is needed.
    Abbreviated,
    /// Secret behind a sign without a space, as in `pass=…`; otherwise if it looks like it.
    Terse,
    /// Secret if it looks like it: these words have everyday meanings too.
    Weak,
    /// As [`Self::Weak`], and often counted: a bare number behind it may be how many there are.
    Counted,
    /// Secret if it has four digits: the pins of a chip are numbered too.
    Pin,
}

impl Kind {
    pub(super) fn is_strong(self) -> bool {
        matches!(self, Self::Strong | Self::Abbreviated)
    }
}

/// All names in lower case, with how much they say.
#[rustfmt::skip]
pub(super) const NAMES: &[(Kind, &[&str])] = &[
    (Kind::Strong, &["password", "passwort", "passphrase", "passcode", "密码", "密碼", "口令", "暗号", "暗號"]),
    (Kind::Abbreviated, &["passwd", "pwd", "pw", "psw", "pswd"]),
    (Kind::Terse, &["pass"]),
    (Kind::Counted, &["token", "secret", "credential"]),
    (Kind::Weak, &[
        "api key", "api_key", "api-key", "apikey", "access key", "access_key", "accesskey", "account key", "account_key", "accountkey",
        "secret key", "secret_key", "secretkey", "private key", "private_key", "privatekey", "signing key", "signing_key",
        "encryption key", "encryption_key", "auth key", "auth_key", "authkey", "license key", "licence key", "product key",
        "master key", "shared key", "session key", "wifi key", "wi-fi key",
        "密钥", "密鑰", "金鑰", "私钥", "私鑰", "令牌", "秘钥", "密匙",
    ]),
    (Kind::Pin, &["pin", "pin码", "pin 码", "cvv", "cvv2", "cvc"]),
];

/// What makes another word of "password": "password manager", "pw reset".
#[rustfmt::skip]
const COMPOUNDS: [&str; 22] = [
    "manager", "reset", "resets", "change", "changes", "policy", "hash", "hashes", "hashing", "field", "prompt", "protection", "protected",
    "length", "generator", "recovery", "hint", "required", "rotation", "please", "again", "expired",
];

pub(super) fn is_compound(word: &str) -> bool {
    COMPOUNDS.contains(&word.to_ascii_lowercase().as_str())
}
