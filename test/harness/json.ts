/** An answer's type in tests. */

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers as clients do, field by field.
export type Json = any;
