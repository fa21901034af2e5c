#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use proptest::prelude::*;

fn one(text: &str) -> Statement {
    let mut all = statements(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all.remove(0)
}

#[test]
fn standing_preferences_are_recognised_in_both_languages() {
    for (text, key) in [
        ("I prefer answers as tables", Some("answer_format")),
        ("Answer as tables.", Some("answer_format")),
        ("Please answer as tables", Some("answer_format")),
        ("please always answer in Chinese", Some("answer_language")),
        (
            "From now on, keep your answers short",
            Some("answer_length"),
        ),
        ("I don't like coffee.", Some("taste_coffee")),
        ("I like coffee!", Some("taste_coffee")),
        ("Call me Bob", Some("form_of_address")),
        ("By the way, you can call me Al.", Some("form_of_address")),
        ("Please don't use emojis", None),
        ("My favourite colour is green", Some("favorite_colour")),
        ("Remember that I prefer dark mode", Some("taste_dark_mode")),
        ("我喜欢用表格回答", Some("answer_format")),
        ("以后请用表格回答", Some("answer_format")),
        ("请用中文回答。", Some("answer_language")),
        ("用表格回答", Some("answer_format")),
        ("我不喜欢咖啡", Some("taste_咖啡")),
        ("我喜欢咖啡！", Some("taste_咖啡")),
        ("请叫我小明", Some("form_of_address")),
        ("请不要用表情符号", None),
        ("以后，请用表格回答", Some("answer_format")),
        ("From now on use metric units", None),
        ("我最喜欢的颜色是绿色", Some("favorite_颜色")),
        (
            "I prefer the metric system",
            Some("taste_the_metric_system"),
        ),
        ("I love having them around.", None),
        ("I love breaking up my studies into smaller parts", None),
        ("I like listening to jazz", Some("taste_listening_to_jazz")),
        ("Going forward, tables only, please", Some("answer_format")),
        ("Ｉ　ｐｒｅｆｅｒ　ｔａｂｌｅｓ", Some("answer_format")),
    ] {
        let found = one(text);
        assert_eq!(
            (found.kind, found.scope, found.key.as_deref()),
            (Kind::Preference, Scope::UserProfile, key),
            "{text}"
        );
    }
}

#[test]
fn plain_statements_are_recognised_with_what_they_are_about() {
    use Kind::{Decision, Fact, TemporaryState};
    use Scope::{ProjectContext, TaskState, UserProfile};
    for (text, kind, scope, key) in [
        ("My budget is 300k", Fact, ProjectContext, Some("budget")),
        (
            "The budget is now 400k.",
            Fact,
            ProjectContext,
            Some("budget"),
        ),
        (
            "Our deploy target is Kubernetes",
            Fact,
            ProjectContext,
            Some("deploy_target"),
        ),
        (
            "The project deadline is Friday",
            Fact,
            ProjectContext,
            Some("deadline"),
        ),
        ("My name is Bob", Fact, UserProfile, Some("name")),
        ("My dog's name is Rex", Fact, UserProfile, Some("dog_name")),
        ("I live in Paris", Fact, UserProfile, Some("home")),
        ("I'm a nurse", Fact, UserProfile, None),
        (
            "Please remember that the office closes at six",
            Fact,
            ProjectContext,
            None,
        ),
        (
            "We decided to use PostgreSQL",
            Decision,
            ProjectContext,
            None,
        ),
        ("We’ve decided on Rust.", Decision, ProjectContext, None),
        (
            "I'm currently migrating the database",
            TemporaryState,
            TaskState,
            None,
        ),
        ("项目预算是30万", Fact, ProjectContext, Some("budget")),
        ("预算现在改成40万", Fact, ProjectContext, Some("budget")),
        ("我的名字是小明", Fact, UserProfile, Some("name")),
        ("我叫小明", Fact, UserProfile, Some("name")),
        ("我住在上海", Fact, UserProfile, Some("home")),
        ("我对花生过敏", Fact, UserProfile, None),
        ("我在一家银行工作", Fact, UserProfile, Some("employer")),
        ("我们决定用 PostgreSQL", Decision, ProjectContext, None),
        ("我正在写论文", TemporaryState, TaskState, None),
        ("请记住，会议在周五", Fact, ProjectContext, None),
        ("请记住：周五开会", Fact, ProjectContext, None),
        (
            "Remember: the key is under the mat",
            Fact,
            ProjectContext,
            None,
        ),
    ] {
        let found = one(text);
        assert_eq!(
            (found.kind, found.scope, found.key.as_deref()),
            (kind, scope, key),
            "{text}"
        );
    }
}

#[test]
fn questions_quotations_and_the_talk_at_hand_state_nothing() {
    for text in [
        "Do you think I prefer tables?",
        "I prefer tables, right?",
        "What is my budget",
        "我的预算是多少",
        "我喜欢什么颜色？",
        "She said \"I prefer tables\".",
        "他说：“我喜欢表格”",
        "> I prefer tables",
        "```\nI prefer tables\n```",
        "If my budget is 300k we are fine",
        "Alice likes tea",
        "I like it!",
        "I love your answer",
        "我喜欢你的回答",
        "My question is about tea",
        "我的问题是这样的",
        "I'm a bit tired",
        "Call me back tomorrow",
        "The weather is nice",
        "今天天气很好",
        "Answer the following, please.",
        "Never mind",
        "He always gives me work",
        "always gives me work",
        "I love the actors",
        "Remember to buy milk",
        "I love to",
        "以后再说",
        "From now on.",
        "Thanks!",
        "",
    ] {
        assert_eq!(statements(text), [], "{text}");
    }
}

#[test]
fn the_words_are_the_persons_own_and_each_statement_stands_alone() {
    let all = statements(
        "Thanks for that, I prefer answers as tables, especially for numbers. By the way, my name is Bob and I live in Paris!",
    );
    let words: Vec<&str> = all.iter().map(|s| s.content.as_str()).collect();
    assert_eq!(
        words,
        [
            "I prefer answers as tables, especially for numbers",
            "my name is Bob",
            "I live in Paris"
        ]
    );
    let all = statements("你好，我叫小明，我住在上海。以后请用表格回答！");
    let words: Vec<&str> = all.iter().map(|s| s.content.as_str()).collect();
    assert_eq!(words, ["我叫小明", "我住在上海", "以后请用表格回答"]);
}

#[test]
fn what_is_longer_than_200_characters_is_left_to_the_message() {
    assert_eq!(statements(&format!("I prefer {}", "tea ".repeat(60))), []);
}

proptest! {
    #[test]
    fn any_text_is_survived_and_every_statement_is_in_it(
        text in "(\\PC|I prefer |my name is |, | and |。|，|我喜欢|以后请|Ｉ ｌｉｋｅ |’|“|remember that ){0,30}",
    ) {
        for statement in statements(&text) {
            prop_assert!(text.contains(&statement.content), "{:?}", statement);
            prop_assert!(statement.content.chars().count() <= LONGEST);
            prop_assert!((3..=5).contains(&statement.importance));
            prop_assert!(statement.key.is_none_or(|k| !k.is_empty()));
        }
    }
}

/// Key and value of the only statement of a text.
fn said(text: &str) -> (Option<String>, Value) {
    let statement = one(text);
    (statement.key, statement.value)
}

#[test]
fn a_change_has_the_key_and_the_new_value_in_whatever_words_it_is_told() {
    for text in [
        "The budget is now 400k.",
        "Our budget is 400k",
        "Our new budget is $400,000.",
        "Budget: 400k",
        "Our updated budget: 400k",
        "The budget changed to 400k",
        "The budget was raised to 400k.",
        "The budget has been increased from 300k to 400k",
        "The budget went up to 400k",
        "The budget has grown to 0.4 million",
        "We raised the budget to 400k",
        "We've just raised our budget from 300k to 400k.",
        "They increased the project budget to 400k",
        "I raised the budget up to 400k",
        "Please change the budget to 400k.",
        "Update the budget to 400k",
        "Set the project's budget to 400k",
        "Make the budget 400k",
        "We have a budget of 400k",
        "We now have a budget of 400k",
        "The budget for the project is 400k",
        "The budget is not 300k but 400k",
        "The budget is 300k. Actually, make it 400k.",
        "The budget is 300k. No wait, it's 400k",
        "Actually, the budget is 400k",
        "Update: the budget is 400k",
        "预算改成40万",
        "预算变成40万了",
        "预算调整为40万。",
        "预算涨到40万了",
        "预算现在是40万",
        "我们的预算是40万",
        "把预算改为40万",
        "我们把预算从30万提高到了40万",
        "请把预算调整到40万元",
        "项目预算已经增加到40万",
        "预算从30万涨到40万",
        "新的预算是40万",
        "预算：40万",
        "预算不是30万，而是40万",
        "预算是30万。不对，应该是40万。",
        "更新：预算改为40万",
    ] {
        assert_eq!(
            said(text),
            (Some("budget".to_owned()), Value::Is("400000".to_owned())),
            "{text}"
        );
    }
    for (text, key, value) in [
        ("The deadline moved to Friday", "deadline", "friday"),
        (
            "We pushed the deadline back to June 5",
            "deadline",
            "june 5",
        ),
        (
            "The deadline was postponed until next Monday",
            "deadline",
            "next monday",
        ),
        (
            "We switched our database from Postgres to MySQL",
            "database",
            "mysql",
        ),
        ("截止日期推迟到周五", "deadline", "周五"),
        ("我们把数据库换成MySQL了", "database", "mysql"),
        ("I moved to Berlin", "home", "berlin"),
        ("I now live in Berlin", "home", "berlin"),
        ("我现在住在柏林", "home", "柏林"),
        ("I now prefer bullet points", "answer_format", "list"),
        (
            "From now on answer in English",
            "answer_language",
            "english",
        ),
        ("我现在更喜欢列表形式的回答", "answer_format", "list"),
    ] {
        assert_eq!(
            said(text),
            (Some(key.to_owned()), Value::Is(value.to_owned())),
            "{text}"
        );
    }
}

#[test]
fn a_decision_about_a_subject_changes_it() {
    for text in [
        "We decided to raise the budget to 400k",
        "We agreed that the budget is 400k",
        "我们决定把预算提高到40万",
    ] {
        let found = one(text);
        assert_eq!(
            (found.kind, found.key.as_deref(), found.value),
            (
                Kind::Decision,
                Some("budget"),
                Value::Is("400000".to_owned())
            ),
            "{text}"
        );
    }
}

#[test]
fn what_no_longer_holds_is_a_fact_and_no_wish() {
    let not = |value: &str| Value::Not(value.to_owned());
    for (text, key, value) in [
        ("I no longer like coffee", "taste_coffee", not("like")),
        ("I don't like coffee any more.", "taste_coffee", not("like")),
        ("I no longer prefer tables", "answer_format", not("table")),
        ("I no longer live in Paris", "home", not("paris")),
        ("I don't live in Paris anymore", "home", not("paris")),
        ("We don't have a budget any more", "budget", Value::Nothing),
        ("We no longer have a deadline", "deadline", Value::Nothing),
        ("There is no deadline anymore", "deadline", Value::Nothing),
        ("The deadline was cancelled", "deadline", Value::Nothing),
        ("We dropped the deadline", "deadline", Value::Nothing),
        ("The budget is no longer 300k", "budget", not("300000")),
        ("我不再喜欢咖啡", "taste_咖啡", not("like")),
        ("我不再喜欢咖啡了", "taste_咖啡", not("like")),
        ("我已经不住在上海了", "home", not("上海")),
        ("预算取消了", "budget", Value::Nothing),
        ("我们取消了截止日期", "deadline", Value::Nothing),
        ("我们没有预算了", "budget", Value::Nothing),
        ("预算不再是30万", "budget", not("300000")),
    ] {
        let found = one(text);
        assert_eq!(
            (found.kind, found.key.as_deref(), found.value),
            (Kind::Fact, Some(key), value),
            "{text}"
        );
    }
}

#[test]
fn what_is_said_about_a_subject_without_its_value_has_no_key() {
    for text in [
        "The budget is tight",
        "Our deadline is coming closer",
        "Our database is slow",
        "My dog is hungry",
        "Our client is very happy",
        "我们的数据库很慢",
        "The budget was 300k last year",
        "We cut the budget by 50k",
        "预算增加了10万",
    ] {
        assert!(
            statements(text).iter().all(|s| s.key.is_none()),
            "{text}: {:?}",
            statements(text)
        );
    }
}

#[test]
fn wishes_are_known_by_more_than_one_form_of_words() {
    for (text, key, value) in [
        ("请用中文回答我", "answer_language", "chinese"),
        ("I really prefer tables", "answer_format", "table"),
        ("I do prefer tables", "answer_format", "table"),
        ("I'd rather have tables", "answer_format", "table"),
        ("I want short answers", "answer_length", "short"),
        (
            "I would like you to keep answers brief",
            "answer_length",
            "short",
        ),
        (
            "Can you always reply in Spanish?",
            "answer_language",
            "spanish",
        ),
        (
            "Could you please answer in French from now on?",
            "answer_language",
            "french",
        ),
        ("我想要简短的回答", "answer_length", "short"),
        ("回答的时候尽量简洁一点", "answer_length", "short"),
        ("能不能以后都用中文回答？", "answer_language", "chinese"),
        ("你可以一直用中文回答吗？", "answer_language", "chinese"),
    ] {
        let found = one(text);
        assert_eq!(
            (found.kind, found.key.as_deref(), found.value),
            (Kind::Preference, Some(key), Value::Is(value.to_owned())),
            "{text}"
        );
    }
    assert_eq!(one("No emojis please").kind, Kind::Preference);
    assert_eq!(
        said("No tables, please. No tables please").1,
        Value::Not("table".to_owned())
    );
    assert_eq!(
        one("Can you always reply in Spanish?").content,
        "always reply in Spanish"
    );
}

#[test]
fn the_words_of_others_and_wishes_of_the_moment_do_not_stand() {
    for text in [
        "Translate: I prefer tables",
        "Please translate the following into French:\nI prefer tables.\nMy name is Bob.",
        "She told me: I prefer tables",
        "The email reads: I prefer tables. My budget is 300k.",
        "I prefer not to say",
        "Just this once, answer in French",
        "Answer in French just this once",
        "Summarise this: I prefer tables",
        "Example: I prefer tables",
        "For example, my budget is 300k",
        "If we grow, our budget is 500k",
        "翻译：我喜欢表格",
        "请翻译下面这句话：我喜欢表格。",
        "她告诉我：我喜欢表格",
        "这次请用表格回答",
        "例如，我喜欢表格",
        "如果扩大规模，预算是50万",
        "Can you answer in Spanish?",
        "I love English literature and the sea",
    ] {
        let kept: Vec<Statement> = statements(text)
            .into_iter()
            .filter(|s| {
                s.key
                    .as_deref()
                    .is_none_or(|k| !k.starts_with("taste_english"))
            })
            .collect();
        assert_eq!(kept, [], "{text}");
    }
    // What is introduced in one's own name stands.
    for text in [
        "Please remember: my name is Bob",
        "My preferences: I prefer tables",
        "Two things: I prefer tables",
        "Correction: my name is Bob",
        "备注：我喜欢表格",
    ] {
        assert_eq!(statements(text).len(), 1, "{text}");
    }
}

#[test]
fn liking_a_language_is_no_wish_for_answers() {
    assert_eq!(
        said("I love English literature").0.as_deref(),
        Some("taste_english_literature")
    );
    assert_eq!(said("I like coffee").1, said("I love coffee").1);
    assert_ne!(said("I like coffee").1, said("I hate coffee").1);
}

#[test]
fn the_model_tells_facts_of_the_person_and_wishes_nothing() {
    let told = |text: &str| -> Vec<Option<String>> {
        statements_of(text, Voice::Answering)
            .into_iter()
            .map(|s| s.key)
            .collect()
    };
    assert_eq!(told("Your budget is 300k."), [Some("budget".to_owned())]);
    assert_eq!(
        told("I've updated your budget to 400k."),
        [Some("budget".to_owned())]
    );
    assert_eq!(told("您的预算是30万。"), [Some("budget".to_owned())]);
    assert_eq!(told("I prefer tables. My name is Claude."), []);
}
