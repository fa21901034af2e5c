//! Made-up memories and questions: the same every time, with words as unevenly frequent as those of a language.

/// How many different words there are.
const VOCABULARY: u64 = 20_000;

/// How many words a memory has, at least and at most.
const WORDS: (u64, u64) = (10, 18);

/// How many of a memory's words are asked for.
const ASKED: usize = 4;

/// Words of memories that are added while it is measured lie above all others.
const RARE: u64 = 1 << 32;

/// A sequence of numbers without a pattern: `SplitMix64` (Steele, Lea, Flood, 2014).
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    /// The sequence of that number.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// From 0 up to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The rank of a word; frequencies fall with the rank as Zipf's law has it.
    fn rank(&mut self) -> u64 {
        let rank = (self.share() * (VOCABULARY as f64).ln()).exp();
        (rank as u64).min(VOCABULARY - 1)
    }
}

/// The memory of that number of that owner.
pub(super) fn memory(owner: u64, number: u64) -> String {
    words(owner, number).join(" ")
}

/// A question about it, in words of it; the rarer ones, as people ask.
pub(super) fn question(owner: u64, number: u64) -> String {
    let mut numbers = Numbers::new(seed(owner, number));
    let mut ranks = ranks(&mut numbers);
    ranks.sort_unstable();
    ranks.dedup();
    let from = ranks.len().saturating_sub(ASKED);
    let asked: Vec<String> = ranks[from..].iter().map(|rank| word(*rank)).collect();
    asked.join(" ")
}

/// A memory like the others with a word that no other has, and that word.
pub(super) fn marked(owner: u64, number: u64) -> (String, String) {
    let mark = word(RARE + number);
    (format!("{} {mark}", memory(owner, number)), mark)
}

fn words(owner: u64, number: u64) -> Vec<String> {
    let mut numbers = Numbers::new(seed(owner, number));
    ranks(&mut numbers).into_iter().map(word).collect()
}

fn ranks(numbers: &mut Numbers) -> Vec<u64> {
    let length = WORDS.0 + numbers.below(WORDS.1 - WORDS.0 + 1);
    (0..length).map(|_| numbers.rank()).collect()
}

fn seed(owner: u64, number: u64) -> u64 {
    Numbers::new(owner << 32 ^ number).next()
}

/// The word of a rank: two syllables or more, another for each rank.
fn word(rank: u64) -> String {
    const CONSONANTS: &[u8] = b"bdfgklmnprtvz";
    const VOWELS: &[u8] = b"aiou";
    let syllables = (CONSONANTS.len() * VOWELS.len()) as u64;
    let mut rest = rank + syllables;
    let mut out = String::new();
    while rest > 0 {
        let syllable = (rest % syllables) as usize;
        out.push(char::from(CONSONANTS[syllable / VOWELS.len()]));
        out.push(char::from(VOWELS[syllable % VOWELS.len()]));
        rest /= syllables;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn a_memory_is_the_same_every_time_and_another_for_each_number_and_owner() {
        assert_eq!(memory(3, 4), memory(3, 4));
        let all: HashSet<String> = (0..20)
            .flat_map(|owner| (0..200).map(move |n| memory(owner, n)))
            .collect();
        assert_eq!(all.len(), 4_000);
    }

    #[test]
    fn a_question_asks_in_words_of_its_memory() {
        for number in 0..100 {
            let memory = words(1, number);
            let question = question(1, number);
            assert!(question.split(' ').count() >= 3, "{question}");
            assert!(question.split(' ').all(|w| memory.iter().any(|m| m == w)));
        }
    }

    #[test]
    fn few_words_are_frequent_and_many_are_rare() {
        let mut counts: HashMap<String, u32> = HashMap::new();
        for word in (0..2_000).flat_map(|n| words(1, n)) {
            *counts.entry(word).or_default() += 1;
        }
        let mut sorted: Vec<u32> = counts.into_values().collect();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert!(
            sorted[0] > 1_000 && sorted.len() > 3_000,
            "{} {}",
            sorted[0],
            sorted.len()
        );
        assert!(sorted[sorted.len() / 2] < 10);
    }

    #[test]
    fn no_two_ranks_share_a_word() {
        let words: HashSet<String> = (0..VOCABULARY)
            .chain(RARE..RARE + 1_000)
            .map(word)
            .collect();
        assert_eq!(words.len() as u64, VOCABULARY + 1_000);
    }
}
