/** What an answer is to a test. */

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers as clients do, field by field.
export type Json = any;
