//! Questions about other people: the same words with other names.

/// `text` with each of the names `from` replaced by the one at the same place of `to`, where it stands as a word of its own. All are replaced at
/// once, so that two people can change places.
pub(super) fn replaced(text: &str, from: &[String], to: &[String]) -> String {
    let mut pairs: Vec<(&str, &str)> = from
        .iter()
        .zip(to.iter().cycle())
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .filter(|(a, _)| !a.is_empty())
        .collect();
    // The longer name first: it may hold the shorter one.
    pairs.sort_by_key(|(a, _)| std::cmp::Reverse(a.len()));
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let before = text[..text.len() - rest.len()].chars().next_back();
        let found = pairs.iter().find(|(name, _)| {
            rest.strip_prefix(name).is_some_and(|behind| {
                let (first, last) = (name.chars().next(), name.chars().next_back());
                !joined(before, first) && !joined(last, behind.chars().next())
            })
        });
        if let Some((name, other)) = found {
            out.push_str(other);
            rest = &rest[name.len()..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Whether two neighbouring characters are of one word. Scripts without spaces between words have no such thing.
fn joined(a: Option<char>, b: Option<char>) -> bool {
    let of_word = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    matches!((a, b), (Some(a), Some(b)) if of_word(a) && of_word(b))
}

fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn names_are_replaced_as_words_and_all_at_once() {
        let (from, to) = (names(&["Ann", "Bo"]), names(&["Bo", "Ann"]));
        assert_eq!(
            replaced("Did Ann's sister Annie meet Bo, or Bob? (Ann)", &from, &to),
            "Did Bo's sister Annie meet Ann, or Bob? (Bo)"
        );
    }

    #[test]
    fn a_name_within_other_chinese_text_is_replaced() {
        let (from, to) = (names(&["李雷", "AI伴侣"]), names(&["韩梅", "AI伴侣"]));
        assert_eq!(replaced("我是李雷吗？", &from, &to), "我是韩梅吗？");
    }

    #[test]
    fn the_longer_name_wins_and_nothing_is_lost_without_names() {
        let (from, to) = (names(&["Ann", "Ann Lee"]), names(&["X", "Y"]));
        assert_eq!(replaced("Ann Lee and Ann", &from, &to), "Y and X");
        assert_eq!(replaced("Ann", &from, &[]), "Ann");
        assert_eq!(replaced("Ann", &[], &to), "Ann");
    }
}
