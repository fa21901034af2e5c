//! What a key may be used for.

use std::fmt;
use std::str::FromStr;

/// A group of operations that a key is good for. None includes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Sessions, messages, turns and their events.
    Chat,
    /// Reading and recalling memories, and their history.
    MemoryRead,
    /// Adding, changing and forgetting memories, and undoing changes.
    MemoryWrite,
    /// Work of several agents on one goal.
    Tasks,
    /// What concerns the tenant as a whole: its users' exports and erasures, its derived work.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [
        Self::Chat,
        Self::MemoryRead,
        Self::MemoryWrite,
        Self::Tasks,
        Self::Admin,
    ];

    /// As it is written: `chat`, `memory:read`, `memory:write`, `tasks`, `admin`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::MemoryRead => "memory:read",
            Self::MemoryWrite => "memory:write",
            Self::Tasks => "tasks",
            Self::Admin => "admin",
        }
    }

    /// The scope that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of scopes. Written with a space between two, as OAuth 2.0 does (RFC 6749, 3.3); read with commas too.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

/// A word that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope; there are chat, memory:read, memory:write, tasks and admin")]
pub struct UnknownScope(String);

impl Scopes {
    /// Every scope.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Whether the scope is among them.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// As a number, a bit for each in the order of [`Scope::ALL`].
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Those of that number; none if it has a bit that is none's.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (bits & !Self::all().0 == 0).then_some(Self(bits))
    }

    /// Those among the words that are scopes. A token of an identity provider is for others too, who have words of their own.
    pub fn among<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        words.into_iter().filter_map(Scope::parse).collect()
    }

    /// Each, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope.bit()))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, scope) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scopes({self})")
    }
}

impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        text.split([',', ' '])
            .filter(|word| !word.is_empty())
            .map(|word| Scope::parse(word).ok_or_else(|| UnknownScope(word.to_owned())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written_in_any_order_and_with_commas() {
        let read: Scopes = "memory:read,chat, admin".parse().unwrap();
        assert_eq!(read.to_string(), "chat memory:read admin");
        assert_eq!(read.to_string().parse(), Ok(read));
        assert_eq!(Scopes::all().iter().count(), Scope::ALL.len());
        assert!(
            "".parse::<Scopes>().unwrap().is_empty() && " ,".parse::<Scopes>().unwrap().is_empty()
        );
    }

    #[test]
    fn what_is_no_scope_is_refused_by_its_word() {
        for bad in ["memory", "chat,Chat", "memory:*", "chat;admin"] {
            assert!(bad.parse::<Scopes>().is_err(), "{bad}");
        }
        let refused = "chat,root".parse::<Scopes>().unwrap_err();
        assert_eq!(refused, UnknownScope("root".to_owned()));
    }

    #[test]
    fn of_many_words_those_are_taken_that_are_scopes() {
        let among = Scopes::among(["openid", "chat", "Admin", "", "memory:read", "chat"]);
        assert_eq!(among.to_string(), "chat memory:read");
        assert!(Scopes::among(["profile"]).is_empty());
    }

    #[test]
    fn scopes_are_a_number_and_read_back() {
        for bits in 0..=u8::MAX {
            match Scopes::from_bits(bits) {
                Some(scopes) => assert_eq!(scopes.bits(), bits),
                None => assert!(bits > Scopes::all().bits()),
            }
        }
    }

    #[test]
    fn no_scope_includes_another() {
        for one in Scope::ALL {
            let alone: Scopes = [one].into_iter().collect();
            for other in Scope::ALL {
                assert_eq!(alone.contains(other), one == other);
            }
        }
    }
}
