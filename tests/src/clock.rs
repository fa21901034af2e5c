//! A process's clock that a test may set while it runs: libfaketime stands before the system's clock of the day.
//!
//! Only what tells the time of day is moved. The monotonic clock, by which programs wait, goes on as it does when a clock is corrected.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// How long after [`Clock::set`] the process still tells the old time at most, in seconds: libfaketime reads its file that often.
pub const SEEN_WITHIN_SECONDS: u64 = 1;

/// The clock of the processes that are started with its settings.
#[derive(Debug)]
pub struct Clock {
    dir: TempDir,
}

impl Clock {
    /// A clock that is right.
    pub fn new() -> Self {
        let dir = TempDir::new().expect("a directory");
        crate::paths::open_to_all(dir.path());
        let clock = Self { dir };
        clock.set(0);
        clock
    }

    /// Lets it differ from the true time by so many seconds from now on.
    pub fn set(&self, offset_seconds: i64) {
        // Renamed into place, for it may be read at any moment.
        let written = self.dir.path().join("written");
        std::fs::write(&written, format!("{offset_seconds:+}\n")).expect("a file");
        crate::paths::open_to_all(&written);
        std::fs::rename(&written, self.file()).expect("a file in place");
    }

    /// The environment that puts a process under this clock.
    pub fn settings(&self) -> [(&'static str, String); 4] {
        [
            ("LD_PRELOAD", library().display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().display().to_string()),
            ("FAKETIME_CACHE_DURATION", SEEN_WITHIN_SECONDS.to_string()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("offset")
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Removes what the library keeps in shared memory for a process and leaves there when that is killed. The next process of that number would
/// stumble over it.
pub fn clean_up_after(process: u32) {
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
        drop(std::fs::remove_file(format!("/dev/shm/{name}{process}")));
    }
}

/// The library that replaces the clock; that it is missing is a failure.
fn library() -> PathBuf {
    if let Some(named) = std::env::var_os("TIDEMARK_TEST_FAKETIME") {
        return PathBuf::from(named);
    }
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let path = Path::new("/usr/lib")
        .join(triplet)
        .join("faketime/libfaketimeMT.so.1");
    assert!(
        path.is_file(),
        "{} is not there; scripts/test installs it",
        path.display()
    );
    path
}
