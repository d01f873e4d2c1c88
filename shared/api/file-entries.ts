/** Schemas shared by files of a drive and of a sandbox. */
import { type TSchema, Type } from "@sinclair/typebox";
import { fields, nullable, oneOf, pageQuery, timestamp } from "./contract.ts";

export const MAX_PATH_BYTES = 4096;

const ENTRY_TYPES = ["file", "directory", "symlink", "other"] as const;

export const pathBytes = Type.Optional(
  Type.String({ contentEncoding: "base64", description: "The path's bytes, if they are not UTF-8." }),
);

/** The fields of an entry; `owned` has the owner's fields. */
export const entryFields = <T extends Record<string, TSchema>>(owned: T) => ({
  path: Type.String(),
  path_b64: pathBytes,
  name: Type.String(),
  type: oneOf(ENTRY_TYPES),
  size_bytes: Type.Integer(),
  mode: Type.String(),
  ...owned,
  modified_at: timestamp,
  target: Type.Optional(Type.String({ description: "Target of a symbolic link." })),
});

/** A page of a directory. */
export const entryPage = <T extends TSchema>(entry: T) =>
  fields({ path: Type.String(), items: Type.Array(entry), next_cursor: nullable(Type.String()) });

export const entryPageQuery = {
  ...pageQuery,
  // A cursor contains a path, and its encoding adds a third.
  cursor: Type.Optional(
    Type.String({ maxLength: 2 * MAX_PATH_BYTES, description: pageQuery.cursor.description ?? "" }),
  ),
};

/** Fields of a move; `path` is the schema of both paths. */
export const moveFields = <T extends TSchema>(path: T) =>
  fields({
    from: path,
    to: path,
    overwrite: Type.Optional(Type.Boolean({ description: "false if absent: refuse when the target exists." })),
  });

export const fileMode = Type.String({
  pattern: "^0?[0-7]{3}$",
  description: "Permissions in octal; 0644 if absent.",
  examples: ["0644"],
});

export const owner = Type.String({
  pattern: "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$",
  description: "uid:gid, or root; a drive knows no other user names. Of directories above it that are made too.",
  examples: ["1000:1000"],
});
