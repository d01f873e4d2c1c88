/** The interface of files in a sandbox's own view: its disk and its mounts. The drive's operations are in drive.ts. */
import { type Static, Type } from "@sinclair/typebox";
import { errorEvent, fields, NONE, named, oneOf, operation, record, timestamp } from "./contract.ts";
import { entryFields, entryPage, entryPageQuery, fileMode, moveFields, owner, pathBytes } from "./file-entries.ts";
import { REACH_ERRORS, sandboxPath } from "./sandboxes.ts";

/** Maximum concurrent file operations of one sandbox, and how long further ones wait. */
export const MAX_FILE_CALLS = 32;
export const FILE_CALL_WAIT_MS = 10_000;

/** Rules beyond the schema are in daemon/domain/sandboxes/files/path.ts. */
const guestPath = Type.String({
  minLength: 1,
  code: "invalid_path",
  description: "Absolute path in the sandbox.",
  examples: ["/root/notes.txt"],
});

const entry = record("SandboxFileEntry", entryFields({ uid: Type.Integer(), gid: Type.Integer() }));
export type SandboxFileEntry = Static<typeof entry>;

const reached = ["rate_limited", ...REACH_ERRORS] as const;
const pathErrors = [...reached, "invalid_path", "path_not_found"] as const;
const changeErrors = [...pathErrors, "validation_failed", "already_exists"] as const;

const filePath = fields({ ...sandboxPath.properties, path: guestPath });

export const sandboxFilePut = operation({
  name: "sandbox_file_put",
  extension: "sandbox.files",
  method: "PUT",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files/raw/{path*}",
  summary: "Stream a file into a sandbox",
  description:
    "The body is the file. It is replaced as a whole: no reader sees half a file, and an acknowledged write is on the sandbox's disk. Directories above it are made, and links are followed. A file that a rename cannot replace, such as one below /proc, is written in place.",
  access: "exec",
  params: filePath,
  query: fields({
    mode: Type.Optional({
      ...fileMode,
      description: "Permissions in octal; if absent, those of the file that is replaced, else 0644.",
    }),
    owner: Type.Optional({
      ...owner,
      description:
        "User of the sandbox, user:group or uid:gid; if absent, that of the file that is replaced, else the user that commands run as.",
    }),
    overwrite: Type.Optional(Type.Boolean({ description: "false: refuse when the file exists; true if absent." })),
  }),
  headers: ["if_match", "if_none_match"],
  body: "bytes",
  output: record("WrittenSandboxFile", {
    path: Type.String(),
    size_bytes: Type.Integer(),
    sha256: Type.String(),
    mode: Type.String(),
    uid: Type.Integer(),
    gid: Type.Integer(),
    modified_at: timestamp,
    created: Type.Boolean(),
  }),
  outcomes: { created: 201, replaced: 200 },
  errors: [...changeErrors, "is_directory", "precondition_failed", "file_too_large", "invalid_body"],
  audit: "file.written",
});

export const sandboxFileGet = operation({
  name: "sandbox_file_get",
  extension: "sandbox.files",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files/raw/{path*}",
  summary: "Stream a file out of a sandbox",
  description: "Regular files only; links are followed.",
  access: "exec",
  params: filePath,
  query: NONE,
  headers: ["range", "if_none_match"],
  body: null,
  output: Type.Unknown(),
  outcomes: { ok: 200 },
  bytesOutput: ["application/octet-stream"],
  errors: [...pathErrors, "is_directory", "file_too_large", "range_not_satisfiable"],
  audit: "file.read",
});

export const sandboxFileList = operation({
  name: "sandbox_file_list",
  extension: "sandbox.files",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files",
  summary: "List a directory of a sandbox",
  description:
    "Entries in the order of their bytes, a directory before its entries. recursive stays on the directory's own file system: it enters neither /proc nor /mnt/drive from above.",
  access: "exec",
  params: sandboxPath,
  query: fields({
    path: guestPath,
    recursive: Type.Optional(Type.Boolean({ description: "false if absent." })),
    ...entryPageQuery,
  }),
  body: null,
  output: entryPage(entry),
  outcomes: { ok: 200 },
  errors: [...pathErrors, "invalid_cursor"],
  audit: "file.listed",
  example: { query: { path: "/root" } },
});

export const sandboxFileStat = operation({
  name: "sandbox_file_stat",
  extension: "sandbox.files",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files/stat",
  summary: "Describe one entry of a sandbox's file system",
  access: "exec",
  params: sandboxPath,
  query: fields({
    path: guestPath,
    follow: Type.Optional(Type.Boolean({ description: "true: the target of a symbolic link; false if absent." })),
  }),
  body: null,
  output: entry,
  outcomes: { ok: 200 },
  errors: [...pathErrors],
  audit: "file.stat_read",
  example: { query: { path: "/root/notes.txt" } },
});

export const sandboxFileMkdir = operation({
  name: "sandbox_file_mkdir",
  extension: "sandbox.files",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files/mkdir",
  summary: "Make a directory in a sandbox",
  description: "Makes the directories above it as well. An existing directory is fine, and stays as it is.",
  access: "exec",
  params: sandboxPath,
  query: NONE,
  body: fields({
    path: guestPath,
    mode: Type.Optional({ ...fileMode, description: "Permissions in octal; 0755 if absent." }),
    owner: Type.Optional({
      ...owner,
      description: "User of the sandbox, user:group or uid:gid; the user that commands run as if absent.",
    }),
  }),
  output: record("MadeSandboxDirectory", { ...entry.properties, created: Type.Boolean() }),
  outcomes: { created: 201, existing: 200 },
  errors: [...changeErrors],
  audit: "file.directory_made",
  example: { body: { path: "/root/results" } },
});

export const sandboxFileMove = operation({
  name: "sandbox_file_move",
  extension: "sandbox.files",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files/move",
  summary: "Move an entry of a sandbox's file system",
  description:
    "Links are moved, not followed. Directories above the target are made. Between file systems, such as onto /mnt/drive, it is copied and removed.",
  access: "exec",
  params: sandboxPath,
  query: NONE,
  body: moveFields(guestPath),
  output: entry,
  outcomes: { ok: 200 },
  errors: [...changeErrors, "is_directory", "not_empty"],
  audit: "file.moved",
  example: { body: { from: "/root/draft.txt", to: "/root/final.txt" } },
});

export const sandboxFileDelete = operation({
  name: "sandbox_file_delete",
  extension: "sandbox.files",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files",
  summary: "Delete an entry of a sandbox's file system",
  description: "A link is deleted, not its target. The root and the drive's mount point are refused.",
  access: "exec",
  params: sandboxPath,
  query: fields({ path: guestPath, recursive: Type.Optional(Type.Boolean()) }),
  body: null,
  output: fields({ path: Type.String(), state: oneOf(["deleted"]) }),
  outcomes: { ok: 200 },
  errors: [...pathErrors, "not_empty"],
  audit: "file.deleted",
});

const cursor = Type.String({ description: "The change's place in the stream, for `after`." });

/** The events of a watch besides pings. */
export const fileChangeEvent = named(
  "FileChangeEvent",
  Type.Union([
    record("FileWatchingEvent", { cursor, type: oneOf(["watching"]), path: Type.String() }),
    record("FileChanged", {
      cursor,
      type: oneOf(["created", "modified", "deleted", "moved", "overflow"]),
      path: Type.String(),
      path_b64: pathBytes,
      from: Type.Optional(Type.String({ description: "The former path of a moved entry." })),
      is_directory: Type.Boolean(),
    }),
    errorEvent,
  ]),
);

export const sandboxFileWatch = operation({
  name: "sandbox_file_watch",
  extension: "sandbox.files",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/files/watch",
  summary: "Watch a directory or a file of a sandbox",
  description:
    "Lines of JSON, or server-sent events if Accept requests them: watching once the watch is set, then each change, and ping every 15 s. With after it continues an interrupted watch, within 60 s. overflow means that changes were lost: list the directory again. The stream ends when the watched path is gone, or with error.",
  access: "exec",
  params: sandboxPath,
  query: fields({
    path: guestPath,
    recursive: Type.Optional(Type.Boolean({ description: "Directories below it too; false if absent." })),
    after: Type.Optional(
      Type.String({ pattern: "^[\\w-]{1,64}\\.\\d{1,15}$", description: "cursor of the last event you have." }),
    ),
  }),
  headers: ["last_event_id"],
  body: null,
  output: fileChangeEvent,
  outcomes: { ok: 200 },
  bytesOutput: ["application/x-ndjson", "text/event-stream"],
  errors: [...pathErrors, "history_gone"],
  audit: "file.watched",
  example: { query: { path: "/root" } },
});
