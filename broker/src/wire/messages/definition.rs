//! `message!`: a Kafka message as a list of fields with the versions that have them. It makes the struct, its defaults,
//! and the traits of crate kafka-protocol by which the table of APIs reads and writes it.

/// Defines a request or a response, and the structs of its arrays.
///
/// ```text
/// message! {
///     /// What it is.
///     DeleteGroupsResponse: response, versions 0..=3, flexible 2 {
///         /// What the field is.
///         throttle_time_ms: i32 [0..] = 0,
///         /// Null is refused before version 3.
///         results: Option<Vec<DeletableGroupResult>> [0..] nullable [3..] = None,
///     }
///     /// An element.
///     struct DeletableGroupResult { ... }
/// }
/// ```
/// A field that a version lacks keeps its default when read and is left out when written. After the braces may
/// stand `tagged { 0 => epoch: i64 [3..] = -1, }`; a tagged field is written only if it differs from its default, because some
/// clients cannot read tags.
macro_rules! message {
    (
        $(#[$meta:meta])*
        $name:ident: $kind:ident, versions $versions:expr, flexible $flexible:literal { $($fields:tt)* }
        $(tagged { $($tags:tt)* })?
        $( $(#[$element_meta:meta])* struct $element:ident { $($element_fields:tt)* } $(tagged { $($element_tags:tt)* })? )*
    ) => {
        structure! { $(#[$meta])* $name { $($fields)* } $(tagged { $($tags)* })? }
        $( structure! { $(#[$element_meta])* $element { $($element_fields)* } $(tagged { $($element_tags)* })? } )*

        impl $name {
            fn layout(version: i16) -> anyhow::Result<$crate::wire::messages::field::Layout> {
                anyhow::ensure!(($versions).contains(&version), "{} has no version {version}", stringify!($name));
                Ok($crate::wire::messages::field::Layout { version, flexible: version >= $flexible })
            }
        }

        impl kafka_protocol::protocol::Decodable for $name {
            fn decode<B: kafka_protocol::protocol::buf::ByteBuf>(buf: &mut B, version: i16) -> anyhow::Result<Self> {
                Ok($crate::wire::messages::field::Field::read(buf, Self::layout(version)?)?)
            }
        }

        impl kafka_protocol::protocol::Encodable for $name {
            fn encode<B: kafka_protocol::protocol::buf::ByteBufMut>(
                &self,
                buf: &mut B,
                version: i16,
            ) -> anyhow::Result<()> {
                Ok($crate::wire::messages::field::Field::write(self, buf, Self::layout(version)?)?)
            }

            fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
                Ok($crate::wire::messages::field::Field::size(self, Self::layout(version)?))
            }
        }

        impl kafka_protocol::protocol::HeaderVersion for $name {
            fn header_version(version: i16) -> i16 {
                i16::from(version >= $flexible) + message!(@header $kind)
            }
        }
    };
    (@header request) => { 1 };
    (@header response) => { 0 };
}

/// A struct whose fields stand in a message one after another.
macro_rules! structure {
    (
        $(#[$meta:meta])*
        $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field:ident: $type:ty [$range:expr] $(nullable [$nullable:expr])? = $default:expr,
            )*
        }
        $(tagged {
            $(
                $(#[$tag_meta:meta])*
                $tag:literal => $tagged:ident: $tagged_type:ty [$tagged_range:expr] = $tagged_default:expr,
            )*
        })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
            $($( $(#[$tag_meta])* pub $tagged: $tagged_type, )*)?
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $default, )* $($( $tagged: $tagged_default, )*)? }
            }
        }

        impl $crate::wire::messages::field::Field for $name {
            fn read<B: kafka_protocol::protocol::buf::ByteBuf>(
                buf: &mut B,
                layout: $crate::wire::messages::field::Layout,
            ) -> Result<Self, $crate::wire::messages::field::FieldError> {
                let mut value = Self::default();
                $(
                    if ($range).contains(&layout.version) {
                        value.$field = $crate::wire::messages::field::Field::read(buf, layout)?;
                        $(
                            if $crate::wire::messages::field::Field::is_null(&value.$field)
                                && !($nullable).contains(&layout.version)
                            {
                                return Err($crate::wire::messages::field::FieldError::Null);
                            }
                        )?
                    }
                )*
                if layout.flexible {
                    $crate::wire::messages::field::read_tagged(buf, |tag, bytes| {
                        match tag {
                            $($(
                                $tag if ($tagged_range).contains(&layout.version) => {
                                    let mut bytes = bytes;
                                    value.$tagged = $crate::wire::messages::field::Field::read(&mut bytes, layout)?;
                                }
                            )*)?
                            _ => drop(bytes),
                        }
                        Ok(())
                    })?;
                }
                Ok(value)
            }

            fn write<B: bytes::BufMut>(
                &self,
                buf: &mut B,
                layout: $crate::wire::messages::field::Layout,
            ) -> Result<(), $crate::wire::messages::field::FieldError> {
                $(
                    if ($range).contains(&layout.version) {
                        $(
                            if $crate::wire::messages::field::Field::is_null(&self.$field)
                                && !($nullable).contains(&layout.version)
                            {
                                return Err($crate::wire::messages::field::FieldError::Null);
                            }
                        )?
                        $crate::wire::messages::field::Field::write(&self.$field, buf, layout)?;
                    }
                )*
                if layout.flexible {
                    $crate::wire::messages::field::write_varint(buf, self.tagged_count(layout))?;
                    $($(
                        if ($tagged_range).contains(&layout.version) && { let default: $tagged_type = $tagged_default; self.$tagged != default } {
                            $crate::wire::messages::field::write_tagged(buf, $tag, &self.$tagged, layout)?;
                        }
                    )*)?
                }
                Ok(())
            }

            fn size(&self, layout: $crate::wire::messages::field::Layout) -> usize {
                let mut size = 0;
                $(
                    if ($range).contains(&layout.version) {
                        size += $crate::wire::messages::field::Field::size(&self.$field, layout);
                    }
                )*
                if layout.flexible {
                    size += $crate::wire::messages::field::varint_size(self.tagged_count(layout));
                    $($(
                        if ($tagged_range).contains(&layout.version) && { let default: $tagged_type = $tagged_default; self.$tagged != default } {
                            size += $crate::wire::messages::field::tagged_size($tag, &self.$tagged, layout);
                        }
                    )*)?
                }
                size
            }
        }

        impl $name {
            /// Tagged fields that differ from their defaults.
            fn tagged_count(&self, _layout: $crate::wire::messages::field::Layout) -> usize {
                0 $($( + usize::from(($tagged_range).contains(&_layout.version) && { let default: $tagged_type = $tagged_default; self.$tagged != default }) )*)?
            }
        }
    };
}
