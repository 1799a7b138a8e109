//! `${env:NAME}`, `${file:path:key}` and `${dir:path:name}` in values, so that secrets need not stand in the settings file
//! (Kafka: EnvVarConfigProvider, FileConfigProvider, DirectoryConfigProvider).

use std::io;
use std::path::Path;

use super::file::SettingsFile;

/// What placeholders are taken from.
pub struct Sources<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The content of a file.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

/// Replaces every placeholder in `value`; the error says which one has no value and why. What is not one of the three
/// forms stays as it is, as in Kafka without that provider.
pub fn resolve(value: &str, sources: &Sources<'_>) -> Result<String, String> {
    let mut result = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let (before, inner) = (&rest[..start], &rest[start + 2..start + length]);
        result.push_str(before);
        match replacement(inner, sources) {
            Some(Ok(text)) => result.push_str(&text),
            Some(Err(reason)) => return Err(format!("${{{inner}}}: {reason}")),
            None => result.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    result.push_str(rest);
    Ok(result)
}

fn replacement(inner: &str, sources: &Sources<'_>) -> Option<Result<String, String>> {
    let (provider, argument) = inner.split_once(':')?;
    match provider {
        "env" => Some((sources.variable)(argument).ok_or_else(|| "the variable is not set".to_owned())),
        "file" => argument.rsplit_once(':').map(|(path, key)| of_file(path, key, sources)),
        "dir" => argument.rsplit_once(':').map(|(path, name)| {
            let content = read(&Path::new(path).join(name), sources)?;
            Ok(String::from_utf8_lossy(&content).into_owned())
        }),
        _ => None,
    }
}

fn of_file(path: &str, key: &str, sources: &Sources<'_>) -> Result<String, String> {
    let content = read(Path::new(path), sources)?;
    // Kafka reads such files as properties whatever their name is.
    let file = SettingsFile { path: "secrets.properties".into(), content };
    let mut settings = file.settings().map_err(|error| error.to_string())?;
    settings.remove(key).ok_or_else(|| "the file has no such key".to_owned())
}

fn read(path: &Path, sources: &Sources<'_>) -> Result<Vec<u8>, String> {
    (sources.read)(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(value: &str) -> Result<String, String> {
        let variable = |name: &str| (name == "USER").then(|| "me".to_owned());
        let read = |path: &Path| match path.to_str() {
            Some("/s/secrets") => Ok(b"password=p:w\n".to_vec()),
            Some("/s/one") => Ok(b"1".to_vec()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        resolve(value, &Sources { variable: &variable, read: &read })
    }

    #[test]
    fn placeholders_are_replaced_where_they_stand() {
        assert_eq!(resolved("a-${env:USER}-${file:/s/secrets:password}-${dir:/s:one}"), Ok("a-me-p:w-1".to_owned()));
    }

    #[test]
    fn a_placeholder_without_a_value_is_named() {
        assert_eq!(resolved("${env:NOBODY}"), Err("${env:NOBODY}: the variable is not set".to_owned()));
        assert_eq!(resolved("${file:/s/secrets:x}"), Err("${file:/s/secrets:x}: the file has no such key".to_owned()));
        assert!(resolved("${file:/none:x}").is_err());
    }

    #[test]
    fn other_forms_stay_as_they_are() {
        for text in ["${vault:a:b}", "$ {", "${open", "plain"] {
            assert_eq!(resolved(text), Ok(text.to_owned()));
        }
    }
}
