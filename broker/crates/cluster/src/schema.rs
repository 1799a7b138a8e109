//! One declarative form for every record: a list of fields, each with the version since which it exists and, where it
//! is a tagged one, its tag. The macro writes the struct, its defaults and both directions of its codec.
//!
//! ```text
//! [0] name: String                                since version 0, always written
//! [2, tag 1, default None] elr: Option<Vec<..>>   since version 2, tagged, left out while it equals the default
//! ```

/// Appends a field that is not tagged.
macro_rules! put_plain {
    ($this:ident, $version:ident, $out:ident, $field:ident, [0]) => {
        $crate::wire::Field::put(&$this.$field, $version, $out);
    };
    ($this:ident, $version:ident, $out:ident, $field:ident, [$since:literal $(, default $default:expr)?]) => {
        if $version >= $since {
            $crate::wire::Field::put(&$this.$field, $version, $out);
        }
    };
    ($this:ident, $version:ident, $out:ident, $field:ident, [$since:literal, tag $tag:literal $(, default $default:expr)?]) => {};
}

/// Adds a tagged field that differs from its default.
macro_rules! put_tagged {
    ($this:ident, $version:ident, $tagged:ident, $defaults:ident, $field:ident,
     [$since:literal, tag $tag:literal $(, default $default:expr)?]) => {
        if $version >= $since && $this.$field != $defaults.$field {
            $tagged.add($tag, $version, &$this.$field);
        }
    };
    ($this:ident, $version:ident, $tagged:ident, $defaults:ident, $field:ident, [$($plain:tt)*]) => {};
}

/// Reads a field that is not tagged.
macro_rules! take_plain {
    ($this:ident, $version:ident, $buf:ident, $field:ident, [0]) => {
        $this.$field = $crate::wire::Field::take($version, $buf)?;
    };
    ($this:ident, $version:ident, $buf:ident, $field:ident, [$since:literal $(, default $default:expr)?]) => {
        if $version >= $since {
            $this.$field = $crate::wire::Field::take($version, $buf)?;
        }
    };
    ($this:ident, $version:ident, $buf:ident, $field:ident, [$since:literal, tag $tag:literal $(, default $default:expr)?]) => {};
}

/// Reads the value of a tagged field when the tag is its own.
macro_rules! take_tagged {
    ($this:ident, $version:ident, $found:ident, $value:ident, $field:ident,
     [$since:literal, tag $tag:literal $(, default $default:expr)?]) => {
        if $found == $tag && $version >= $since {
            $this.$field = $crate::wire::Field::take($version, $value)?;
        }
    };
    ($this:ident, $version:ident, $found:ident, $value:ident, $field:ident, [$($plain:tt)*]) => {};
}

/// The default that the schema gives, or the type's own.
macro_rules! field_default {
    ([$since:literal, tag $tag:literal, default $default:expr]) => {
        $default
    };
    ([$since:literal, default $default:expr]) => {
        $default
    };
    ([$($rest:tt)*]) => {
        Default::default()
    };
}

/// Declares structs with their wire form.
macro_rules! messages {
    ($(
        $(#[$meta:meta])*
        $name:ident { $( $(#[$field_meta:meta])* [$($attribute:tt)*] $field:ident: $type:ty ),* $(,)? }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $crate::schema::field_default!([$($attribute)*]), )* }
            }
        }

        impl $crate::wire::Field for $name {
            #[allow(unused_variables, unused_mut, unused_comparisons, reason = "few records use every part of the form")]
            fn put(&self, version: u16, out: &mut Vec<u8>) {
                let this = self;
                let defaults = $name::default();
                $( $crate::schema::put_plain!(this, version, out, $field, [$($attribute)*]); )*
                let mut tagged = $crate::wire::TaggedFields::default();
                $( $crate::schema::put_tagged!(this, version, tagged, defaults, $field, [$($attribute)*]); )*
                tagged.finish(out);
            }

            #[allow(unused_variables, unused_mut, unused_comparisons, reason = "few records use every part of the form")]
            fn take(version: u16, buf: &mut &[u8]) -> Result<Self, $crate::wire::DecodeError> {
                let mut this = $name::default();
                $( $crate::schema::take_plain!(this, version, buf, $field, [$($attribute)*]); )*
                $crate::wire::TaggedFields::take(buf, |found, value| {
                    $( $crate::schema::take_tagged!(this, version, found, value, $field, [$($attribute)*]); )*
                    Ok(())
                })?;
                Ok(this)
            }
        }
    )*};
}

pub(crate) use {field_default, messages, put_plain, put_tagged, take_plain, take_tagged};
