//! Thousands of requests about what is another's: of a user by another of the tenant, of a tenant by another. No answer tells a byte of it or
//! that it is there, and nothing of it changes.
//!
//! `TIDEMARK_TEST_STRANGE_REQUESTS` is how many on each store (5000), `TIDEMARK_TEST_SEED` repeats those of a run.

mod asks;
mod judge;
mod people;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use tidemark_tests::answer::Answer;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{ALL_SCOPES, create, keyed};
use tidemark_tests::model::Model;
use tidemark_tests::random::Random;
use tidemark_tests::server::Server;

use super::operations::failed_job;
use asks::{Ask, Chooser};
use judge::{Document, compare, judge};
use people::{Ids, Person, Things, letters};

each_store!(strangers_learn_nothing_and_change_nothing);

/// Requests in between which the one who is asked about goes on living.
const OF_A_ROUND: u64 = 250;

/// So many requests ask for every operation.
const FOR_ALL: u64 = 2_000;

/// How often an answer that differs is asked for again: what the asker has may change behind two requests.
const AGAIN: usize = 4;

/// Operations that are about nothing of anybody's.
const OF_NOBODY: [&str; 4] = ["healthz", "login", "logout", "readyz"];

struct World {
    people: Vec<Person>,
    ids: Ids,
    document: Document,
    nobody: Client,
    random: Random,
    seen: BTreeMap<&'static str, BTreeMap<u16, u64>>,
    used: Vec<HashSet<String>>,
    asked: u64,
}

async fn strangers_learn_nothing_and_change_nothing(store: Store) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect(name))
    };
    let wanted = number("TIDEMARK_TEST_STRANGE_REQUESTS").unwrap_or(5_000);
    let seed = Random::seed_of_this_run();
    println!("TIDEMARK_TEST_SEED={seed} TIDEMARK_TEST_STRANGE_REQUESTS={wanted}");
    let model = Model::start().await;
    let server = keyed(store).model(&model).start().await;
    let mut world = World::of(&server, Random::from_seed(seed)).await;
    world.settle(store, &server).await;
    let mut round = 0;
    while world.asked < wanted {
        // The administrators come last, and are never asked about: they have no name of their own.
        world.round(round % 3, wanted).await;
        round += 1;
    }
    println!("{} requests: {:#?}", world.asked, world.seen);
    if wanted >= FOR_ALL {
        let unasked = world.document.unasked(&world.seen);
        assert_eq!(unasked, OF_NOBODY, "never asked");
    }
    let log = server.log().text();
    assert!(!log.contains("panicked"), "{log}");
}

impl World {
    /// Two users of a tenant and one of another, and an administrator of each.
    async fn of(server: &Server, mut random: Random) -> Self {
        let mut people = Vec::new();
        for (tenant, bound, admin) in [
            ("acme", true, false),
            ("acme", false, false),
            ("other", true, false),
            ("acme", false, true),
            ("other", false, true),
        ] {
            let stem = letters(&mut random, 12);
            let user = if admin {
                "default".to_owned()
            } else {
                format!("{stem}{}", letters(&mut random, 4))
            };
            let scopes = if admin {
                ALL_SCOPES
            } else {
                "chat,memory:read,memory:write"
            };
            let mut arguments = vec!["--tenant", tenant, "--scopes", scopes];
            if bound {
                arguments.extend(["--user", user.as_str()]);
            }
            let key = create(server, &arguments).await;
            let client = server.client().with_key(&key);
            let client = if bound || admin {
                client
            } else {
                client.as_user(&user)
            };
            people.push(Person {
                client,
                tenant,
                user,
                admin,
                service: !bound,
                stem,
                things: Things::default(),
            });
        }
        Self {
            used: vec![HashSet::new(); people.len()],
            people,
            ids: Ids::default(),
            document: Document::read(),
            nobody: server.client(),
            random,
            seen: BTreeMap::new(),
            asked: 0,
        }
    }

    /// Everybody has something, and a job that has failed.
    async fn settle(&mut self, store: Store, server: &Server) {
        for me in 0..self.people.len() {
            self.live(me).await;
            let user = self.people[me].user.clone();
            if !self.people[me].admin {
                let job = failed_job(store, server, &user).await;
                self.ids.learn(me, &job);
                self.people[me].things.jobs.push(job);
            }
        }
    }

    fn admin_of(&self, tenant: &str) -> &Person {
        let admin = self
            .people
            .iter()
            .find(|person| person.admin && person.tenant == tenant);
        admin.expect("each tenant has an administrator")
    }

    async fn live(&mut self, me: usize) {
        self.people[me]
            .live(&mut self.ids, me, &mut self.random)
            .await;
        let tenant = self.people[me].tenant;
        self.admin_of(tenant).client.until_no_jobs().await;
        self.people[me].look(&mut self.ids, me).await;
    }

    /// Everything that is kept of somebody.
    async fn export(&self, of: usize) -> Vec<Value> {
        let (user, admin) = (&self.people[of].user, self.admin_of(self.people[of].tenant));
        let path = format!("/v1/users/{user}/export");
        let answer = admin.client.post(&path, &json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let lines = answer.text.lines();
        let mut lines: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        lines[0]["exported_at"] = Value::Null;
        lines
    }

    /// One is asked about by all others, who may not see it, and finds everything as it was.
    async fn round(&mut self, victim: usize, wanted: u64) {
        self.live(victim).await;
        let before = self.export(victim).await;
        let tenant = self.people[victim].tenant;
        let strangers: Vec<usize> = (0..self.people.len())
            .filter(|who| {
                *who != victim && !(self.people[*who].admin && self.people[*who].tenant == tenant)
            })
            .collect();
        let end = wanted.min(self.asked + OF_A_ROUND);
        while self.asked < end {
            let at = self.random.between(0, strangers.len() as u64) as usize;
            self.try_one(strangers[at], victim).await;
        }
        assert_eq!(
            self.export(victim).await,
            before,
            "what {} has was changed by others",
            self.people[victim].user
        );
    }

    fn choose(&mut self, asker: usize, victim: usize) -> Ask {
        let [by, about] = self
            .people
            .get_disjoint_mut([asker, victim])
            .expect("two people");
        Chooser::new(&mut self.random, by, about, &mut self.used[asker]).ask()
    }

    async fn try_one(&mut self, asker: usize, victim: usize) {
        let ask = self.choose(asker, victim);
        let twin = (!ask.foreign.is_empty()).then(|| ask.of_nobody());
        let mut difference = Ok(());
        for _ in 0..AGAIN {
            let answer = self.send(asker, &ask).await;
            let Some(twin) = &twin else { return };
            let of_nobody = self.send(asker, twin).await;
            difference = compare(&ask, &answer, &of_nobody);
            if difference.is_ok() {
                return;
            }
            let tenant = self.people[asker].tenant;
            self.admin_of(tenant).client.until_no_jobs().await;
        }
        if let Err(difference) = difference {
            panic!(
                "{} by {}: {difference}",
                ask.text(),
                self.people[asker].user
            );
        }
    }

    /// Sends a request; its answer is one that its asker may read.
    async fn send(&mut self, asker: usize, ask: &Ask) -> Answer {
        let client = &self.people[asker].client;
        let answer = client.send(ask.request(client, &self.nobody)).await;
        self.asked += 1;
        let statuses = self.seen.entry(ask.operation).or_default();
        *statuses.entry(answer.status).or_default() += 1;
        let judged = judge(
            &self.document,
            &self.people,
            &self.ids,
            (asker, ask),
            &answer,
        );
        if let Err(found) = judged {
            panic!(
                "{} by {}: {found} in {}\n{}",
                ask.text(),
                self.people[asker].user,
                answer.status,
                answer.text
            );
        }
        if answer.status < 300 {
            self.learn(asker, ask, &answer);
        }
        answer
    }

    /// What was made by the asker is its own; what it named is not.
    fn learn(&mut self, asker: usize, ask: &Ask, answer: &Answer) {
        let mut text = answer.text.clone();
        for id in people::ids_in(&ask.text()) {
            text = text.replace(&id, "");
        }
        self.ids.learn(asker, &text);
    }
}
