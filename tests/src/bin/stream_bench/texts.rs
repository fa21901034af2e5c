//! Made-up memories and questions: the same every time, with words as unevenly frequent as those of a language.

use tidemark_tests::random::Random;

/// How many different words there are.
const VOCABULARY: u32 = 20_000;

/// How many words a memory has, at least and fewer than.
const WORDS: (u64, u64) = (10, 19);

/// How many of a memory's words are asked for.
const ASKED: usize = 4;

/// The memory of that number of that owner.
pub(crate) fn memory(owner: u32, number: u32) -> String {
    joined(&ranks(owner, number))
}

/// A question about it, in words of it; the rarer ones, as people ask.
pub(crate) fn question(owner: u32, number: u32) -> String {
    let mut ranks = ranks(owner, number);
    ranks.sort_unstable();
    ranks.dedup();
    joined(&ranks[ranks.len().saturating_sub(ASKED)..])
}

/// The ranks of its words; frequencies fall with the rank as Zipf's law has it.
fn ranks(owner: u32, number: u32) -> Vec<u32> {
    let mut random = Random::from_seed(u64::from(owner) << 32 | u64::from(number));
    let length = random.between(WORDS.0, WORDS.1);
    let mut rank = || {
        let share = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (share * f64::from(VOCABULARY).ln()).exp();
        (rank as u32).min(VOCABULARY - 1)
    };
    (0..length).map(|_| rank()).collect()
}

fn joined(ranks: &[u32]) -> String {
    let words: Vec<String> = ranks.iter().map(|rank| word(*rank)).collect();
    words.join(" ")
}

/// The word of a rank: two syllables or more, another for each rank.
fn word(rank: u32) -> String {
    const CONSONANTS: &[u8] = b"bdfgklmnprtvz";
    const VOWELS: &[u8] = b"aiou";
    let syllables = CONSONANTS.len() * VOWELS.len();
    let mut rest = rank as usize + syllables;
    let mut out = String::new();
    while rest > 0 {
        let syllable = rest % syllables;
        out.push(char::from(CONSONANTS[syllable / VOWELS.len()]));
        out.push(char::from(VOWELS[syllable % VOWELS.len()]));
        rest /= syllables;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_memory_is_another_and_the_same_every_time() {
        assert_eq!(memory(3, 4), memory(3, 4));
        let all: HashSet<String> = (0..20)
            .flat_map(|owner| (0..200).map(move |number| memory(owner, number)))
            .collect();
        assert_eq!(all.len(), 4_000);
    }

    #[test]
    fn a_question_asks_in_words_of_its_memory() {
        for number in 0..100 {
            let memory = memory(1, number);
            let words: HashSet<&str> = memory.split(' ').collect();
            let question = question(1, number);
            assert!(question.split(' ').count() >= 3, "{question}");
            assert!(question.split(' ').all(|word| words.contains(word)));
        }
    }

    #[test]
    fn no_two_ranks_share_a_word() {
        let words: HashSet<String> = (0..VOCABULARY).map(word).collect();
        assert_eq!(words.len(), VOCABULARY as usize);
    }
}
