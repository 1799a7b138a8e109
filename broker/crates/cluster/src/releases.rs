//! The releases of Kafka and the levels of `metadata.version` that belong to them (Kafka: MetadataVersion).

/// Level of `metadata.version` of a Kafka release, as `kafka-storage format --release-version` takes it: `4.4-IV2`, or
/// `4.4` for the last one of a release.
pub fn metadata_version_of(release: &str) -> Option<i16> {
    /// First level of each release and the number of its intermediate versions.
    const RELEASES: [(&str, i16, i16); 12] = [
        ("3.3", 7, 1),
        ("3.4", 8, 1),
        ("3.5", 9, 3),
        ("3.6", 12, 3),
        ("3.7", 15, 5),
        ("3.8", 20, 1),
        ("3.9", 21, 1),
        ("4.0", 22, 4),
        ("4.1", 26, 2),
        ("4.2", 28, 2),
        ("4.3", 30, 1),
        ("4.4", 31, 3),
    ];
    let (major_minor, iv) = release.split_once("-IV").map_or((release, None), |(release, iv)| (release, Some(iv)));
    // A bug-fix release such as 4.4.1 has the metadata of its minor release.
    let (_, first, count) = RELEASES.into_iter().find(|(name, _, _)| {
        major_minor == *name
            || (iv.is_none() && major_minor.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    })?;
    // 3.3 knows its third intermediate version only.
    let lowest_iv = if first == 7 { 3 } else { 0 };
    match iv {
        None => Some(first + count - 1),
        Some(iv) => {
            let iv: i16 = iv.parse().ok()?;
            (lowest_iv..lowest_iv + count).contains(&iv).then(|| first + iv - lowest_iv)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_kafkas_metadata_level() {
        for (release, level) in [
            ("3.3-IV3", Some(7)),
            ("3.5-IV1", Some(10)),
            ("3.7-IV4", Some(19)),
            ("3.9", Some(21)),
            ("4.0-IV3", Some(25)),
            ("4.4-IV2", Some(33)),
            ("4.4", Some(33)),
            ("4.4.0", Some(33)),
            ("4.4-IV3", None),
            ("9.9", None),
            ("", None),
        ] {
            assert_eq!(metadata_version_of(release), level, "{release}");
        }
    }
}
