//! Word lists of the analysis: what carries no subject of its own, and the names of months.

/// English function words, contractions included. A word that may name a subject (as "may" names a month) is not here.
#[rustfmt::skip]
pub(super) const ENGLISH_STOP: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "aren't", "as", "at", "be",
    "because", "been", "before", "being", "but", "by", "can", "can't", "could", "couldn't", "did", "didn't", "do",
    "does", "doesn't", "doing", "don't", "each", "for", "from", "had", "has", "have", "haven't", "having", "he", "he's",
    "her", "here", "hers", "him", "his", "how", "i", "i'd", "i'll", "i'm", "i've", "if", "in", "into", "is", "isn't",
    "it", "it's", "its", "just", "let's", "me", "mine", "my", "no", "nor", "not", "of", "off", "on", "or", "our",
    "ours", "out", "over", "please", "she", "she's", "should", "shouldn't", "so", "some", "such", "than", "that",
    "that's", "the", "their", "theirs", "them", "then", "there", "there's", "these", "they", "they're", "this", "those",
    "to", "too", "up", "us", "very", "was", "wasn't", "we", "we'd", "we'll", "we're", "we've", "were", "weren't",
    "what", "what's", "when", "where", "which", "while", "who", "who's", "whom", "whose", "why", "will", "with",
    "won't", "would", "wouldn't", "you", "you'd", "you'll", "you're", "you've", "your", "yours",
];

/// Chinese particles and copulas: they part words.
pub(super) const CHINESE_PARTICLES: &[char] = &[
    '的', '了', '吗', '呢', '吧', '啊', '呀', '嘛', '着', '是', '和', '与', '在', '把', '被',
];

/// Chinese pronouns, question words and other function words of one or two characters.
pub(super) const CHINESE_STOP: &[&str] = &[
    "我", "你", "您", "他", "她", "它", "这", "那", "有", "也", "就", "都", "很", "还", "又", "不",
    "我们", "你们", "他们", "她们", "自己", "这个", "那个", "这些", "那些", "什么", "怎么", "怎样",
    "多少", "哪个", "哪些", "哪里", "为什", "如何", "是否", "请问", "一个", "一下", "可以", "因为",
    "所以", "但", "但是", "如果", "或者", "以及", "没有", "几", "谁", "么",
];

/// Months, January first: the full name and what it is shortened to.
pub(super) const MONTHS: [&[&str]; 12] = [
    &["january", "jan"],
    &["february", "feb"],
    &["march", "mar"],
    &["april", "apr"],
    &["may"],
    &["june", "jun"],
    &["july", "jul"],
    &["august", "aug"],
    &["september", "sep", "sept"],
    &["october", "oct"],
    &["november", "nov"],
    &["december", "dec"],
];
