/** Interface of the room's shared drive. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { entryFields, entryPage, entryPageQuery, fileMode, moveFields, owner } from "./file-entries.ts";
import { anyWarnings, roomId, roomPath } from "./rooms.ts";

export const MAX_WRITE_BYTES = 16 * 1024 * 1024;
export const DRIVE_MOUNT = "/mnt/drive";

/** Rules beyond the schema are in daemon/domain/drive/path.ts. */
export const drivePath = Type.String({
  minLength: 1,
  code: "invalid_path",
  description: "x, /x and /mnt/drive/x are the same file.",
  examples: ["/notes.txt"],
});

const entry = record("DriveEntry", entryFields({}));
export type DriveEntry = Static<typeof entry>;

const stat = record("DriveStat", { guest_path: Type.String(), ...entry.properties });

const written = record("WrittenFile", {
  path: Type.String(),
  guest_path: Type.String(),
  size_bytes: Type.Integer(),
  sha256: Type.String(),
  mode: Type.String(),
  modified_at: timestamp,
  created: Type.Boolean(),
  warnings: anyWarnings,
});

/** An append to a long file does not read all of it. */
const writtenOrAdded = fields({
  ...written.properties,
  sha256: nullable(
    Type.String({ description: "Of the whole file; null when it was added to and is longer than 64 MiB." }),
  ),
});

const mode = Type.Optional(fileMode);

const driveOwner = Type.Optional(owner);

const pathErrors = ["room_not_found", "invalid_path", "path_escapes_drive"] as const;
/** invalid_state: the room was rolled back to a checkpoint during the call. */
const changeErrors = [...pathErrors, "room_destroying", "invalid_state"] as const;
const writeErrors = [...changeErrors, "quota_exceeded", "drive_full", "disk_full"] as const;

export const fsWrite = operation({
  name: "fs_write",
  method: "POST",
  path: "/v1/rooms/{room_id}/drive/write",
  summary: "Write a file on the drive",
  description:
    "The file is replaced as a whole: no reader sees half a file, and an acknowledged write is on disk. An append happens in place: readers may see a part of it.",
  access: "drive:write",
  params: roomPath,
  query: NONE,
  body: fields({
    path: drivePath,
    content: Type.Optional(Type.String({ description: "Text of the file." })),
    content_b64: Type.Optional(Type.String({ contentEncoding: "base64", description: "Bytes of the file." })),
    append: Type.Optional(
      Type.Boolean({
        description:
          "Add to the end of the file instead of replacing it. Readers may see a part of the addition, and a crash before the answer may leave one.",
      }),
    ),
    mode,
    owner: driveOwner,
    overwrite: Type.Optional(Type.Boolean({ description: "false: refuse when the file exists; true if absent." })),
    if_match: Type.Optional(
      Type.String({ maxLength: 128, description: "Only if the file has this sha256; else 412." }),
    ),
  }),
  output: writtenOrAdded,
  outcomes: { created: 201, replaced: 200 },
  errors: [
    ...writeErrors,
    "already_exists",
    "is_directory",
    "precondition_failed",
    "file_too_large",
    "conflicting_fields",
  ],
  audit: "drive.written",
  maxBodyBytes: 23 * 1024 * 1024,
  example: { body: { path: "/notes.txt", content: "hello\n" } },
});

export const fsList = operation({
  name: "fs_list",
  method: "GET",
  path: "/v1/rooms/{room_id}/drive/list",
  summary: "List the drive",
  description: "Without parameters the whole drive, recursively, up to limit.",
  access: "drive:read",
  params: roomPath,
  query: fields({
    path: Type.Optional(drivePath),
    recursive: Type.Optional(Type.Boolean({ description: "If absent: true without a path, else false." })),
    ...entryPageQuery,
  }),
  body: null,
  output: entryPage(entry),
  outcomes: { ok: 200 },
  errors: [...pathErrors, "path_not_found", "invalid_cursor"],
  audit: "drive.listed",
});

export const fsRead = operation({
  name: "fs_read",
  method: "GET",
  path: "/v1/rooms/{room_id}/drive/read",
  summary: "Read a file of the drive",
  access: "drive:read",
  params: roomPath,
  query: fields({
    path: drivePath,
    offset: Type.Optional(Type.Integer({ minimum: 0, description: "The first byte to read; 0 if absent." })),
    length: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_WRITE_BYTES, description: "16 MiB if absent." })),
    format: Type.Optional(
      oneOf(["json", "raw"], {
        description: "json if absent. raw: the bytes themselves; the headers for files apply to these only.",
      }),
    ),
  }),
  headers: ["range", "if_none_match"],
  body: null,
  output: fields({
    path: Type.String(),
    guest_path: Type.String(),
    size_bytes: Type.Integer(),
    offset: Type.Integer(),
    length: Type.Integer(),
    eof: Type.Boolean(),
    content: nullable(Type.String({ description: "Null when the bytes are not UTF-8." })),
    content_b64: Type.String(),
    sha256: Type.String({ description: "Of the bytes in this answer." }),
    modified_at: timestamp,
  }),
  outcomes: { ok: 200 },
  bytesOutput: ["application/octet-stream"],
  errors: [...pathErrors, "path_not_found", "is_directory", "range_not_satisfiable"],
  audit: "drive.read",
  example: { query: { path: "/notes.txt" } },
});

export const fsStat = operation({
  name: "fs_stat",
  extension: "drive.stat",
  method: "GET",
  path: "/v1/rooms/{room_id}/drive/stat",
  summary: "Describe one entry of the drive",
  access: "drive:read",
  params: roomPath,
  query: fields({ path: drivePath }),
  body: null,
  output: stat,
  outcomes: { ok: 200 },
  errors: [...pathErrors, "path_not_found"],
  audit: "drive.stat_read",
});

export const fsMkdir = operation({
  name: "fs_mkdir",
  extension: "drive.mkdir",
  method: "POST",
  path: "/v1/rooms/{room_id}/drive/mkdir",
  summary: "Make a directory on the drive",
  description: "Makes the directories above it as well. An existing directory is fine.",
  access: "drive:write",
  params: roomPath,
  query: NONE,
  body: fields({ path: drivePath, mode, owner: driveOwner }),
  output: fields({ ...stat.properties, created: Type.Boolean() }),
  outcomes: { created: 201, existing: 200 },
  errors: [...writeErrors, "already_exists"],
  audit: "drive.directory_made",
  example: { body: { path: "/results" } },
});

export const fsMove = operation({
  name: "fs_move",
  extension: "drive.move",
  method: "POST",
  path: "/v1/rooms/{room_id}/drive/move",
  summary: "Move an entry of the drive",
  access: "drive:write",
  params: roomPath,
  query: NONE,
  body: moveFields(drivePath),
  output: stat,
  outcomes: { ok: 200 },
  errors: [...writeErrors, "path_not_found", "already_exists", "is_directory", "not_empty"],
  onFullDisk: true,
  audit: "drive.moved",
  example: { body: { from: "/draft.txt", to: "/final.txt" } },
});

export const fsDelete = operation({
  name: "fs_delete",
  extension: "drive.delete",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/drive/delete",
  summary: "Delete an entry of the drive",
  access: "drive:write",
  params: roomPath,
  query: fields({ path: drivePath, recursive: Type.Optional(Type.Boolean()) }),
  body: null,
  output: fields({ path: Type.String(), guest_path: Type.String(), state: oneOf(["deleted"]) }),
  outcomes: { ok: 200 },
  errors: [...changeErrors, "path_not_found", "not_empty"],
  audit: "drive.deleted",
});

const filePath = fields({ room_id: roomId, path: drivePath });

export const filePut = operation({
  name: "file_put",
  extension: "drive.files",
  method: "PUT",
  path: "/v1/rooms/{room_id}/drive/files/{path*}",
  summary: "Stream a file onto the drive",
  description: "The body is the file. No size limit but the drive's quota.",
  access: "drive:write",
  params: filePath,
  query: fields({ mode, owner: driveOwner, overwrite: Type.Optional(Type.Boolean()) }),
  headers: ["if_match", "if_none_match"],
  body: "bytes",
  output: written,
  outcomes: { created: 201, replaced: 200 },
  errors: [...writeErrors, "already_exists", "is_directory", "precondition_failed"],
  audit: "drive.written",
});

export const fileGet = operation({
  name: "file_get",
  extension: "drive.files",
  method: "GET",
  path: "/v1/rooms/{room_id}/drive/files/{path*}",
  summary: "Stream a file from the drive",
  access: "drive:read",
  params: filePath,
  query: NONE,
  headers: ["range", "if_none_match"],
  body: null,
  output: Type.Unknown(),
  outcomes: { ok: 200 },
  bytesOutput: ["application/octet-stream"],
  errors: [...pathErrors, "path_not_found", "is_directory", "range_not_satisfiable"],
  audit: "drive.read",
});
