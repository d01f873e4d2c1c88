/** fs_write: a file of up to 16 MiB from the fields of a request, whole or appended. */

import type { InputOf } from "../../../../shared/api/contract.ts";
import { fsWrite, MAX_WRITE_BYTES } from "../../../../shared/api/drive.ts";
import { type Content, decodeContent } from "../../../core/call/content.ts";
import type { Bound, KeyCall, RuleBreak } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { DriveRoom } from "../deps.ts";
import { FILE_MODE, parseMode } from "../entry.ts";
import { ownerRule, parseOwner } from "../owner.ts";
import { parsePath, pathRule } from "../path.ts";
import { bindDrive, type Drive, type OpenDrive } from "../verb.ts";
import { appendToFile } from "./append.ts";
import { openIfThere, requireDigestAt } from "./digest.ts";
import { isMade } from "./idempotent-append.ts";
import { placeFile, written } from "./place-file.ts";

type Input = InputOf<typeof fsWrite>;

export function write(drive: Drive): Bound {
  /** Decoded content of calls with validated fields. */
  const contents = new WeakMap<object, Uint8Array>();
  const bytesOf = async (input: Partial<Input>, room: DriveRoom) => {
    const bytes = await decodeContent(contentOf(input), drive.piecesOf(room));
    if (bytes) contents.set(input, bytes);
    return bytes;
  };
  return bindDrive(drive, fsWrite, {
    rules: async (input, room) => [
      ...pathRule("path", input.path),
      ...ownerRule(input.owner),
      ...(await contentRules(input, () => bytesOf(input, room))),
    ],
    run: async (call, input, place) => {
      const bytes = contents.get(input) ?? (await bytesOf(input, place.room));
      if (!bytes) throw new Error("the content differs from the validated content");
      if (bytes.byteLength > MAX_WRITE_BYTES) {
        throw new ServiceError("file_too_large", { details: { max_bytes: MAX_WRITE_BYTES } });
      }
      const body = input.append
        ? await append(drive, place, call, input, bytes)
        : await replace(drive, place, call, input, bytes);
      call.audit.details = { path: body.path, size_bytes: body.size_bytes, sha256: body.sha256 };
      return { outcome: body.created ? "created" : "replaced", body };
    },
  });
}

async function replace(drive: Drive, place: OpenDrive, call: KeyCall, input: Input, bytes: Uint8Array) {
  const path = parsePath(input.path);
  if (input.overwrite === false) {
    await using file = call.work.begun ? openIfThere(place.root, path, "read") : null;
    if (file && (await isMade(file, bytes, call.work))) {
      return written(
        path,
        file.facts,
        await file.digest(bytes.byteLength, call.signal, drive.piecesOf(place.room)),
        true,
        [],
      );
    }
    await call.work.noteFirst({ at: 0 });
  }
  const { if_match } = input;
  return await placeFile(drive, place, {
    path,
    mode: parseMode(input.mode, FILE_MODE),
    owner: parseOwner(input.owner),
    overwrite: input.overwrite ?? true,
    size_bytes: bytes.byteLength,
    fill: (write) => write(bytes),
    check: async () => {
      if (if_match !== undefined)
        await requireDigestAt(drive, place.root, path, if_match, { room: place.room, signal: call.signal });
    },
  });
}

async function append(drive: Drive, place: OpenDrive, call: KeyCall, input: Input, bytes: Uint8Array) {
  if (input.overwrite === false) return await replace(drive, place, call, input, bytes);
  const mode = input.mode === undefined ? null : parseMode(input.mode, FILE_MODE);
  const addition = {
    path: parsePath(input.path),
    bytes,
    mode,
    owner: parseOwner(input.owner),
    if_match: input.if_match,
    call,
  };
  const added = await appendToFile(drive, place, addition);
  if (added) return added;
  try {
    return await replace(drive, place, call, { ...input, overwrite: false }, bytes);
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "already_exists")) throw error;
    // The file was created concurrently, or is a link to a file that does not exist.
    const second = await appendToFile(drive, place, addition);
    if (second) return second;
    throw new ServiceError("invalid_path", { detail: "The path is a link that points to nothing." });
  }
}

async function contentRules(input: Partial<Input>, decoded: () => Promise<unknown>): Promise<RuleBreak[]> {
  const { content, content_b64 } = input;
  if (content !== undefined && content_b64 !== undefined) {
    return [
      { field: "content_b64", code: "conflicting_fields", message: "Send either content or content_b64, not both." },
    ];
  }
  if (content === undefined && content_b64 === undefined) {
    return [{ field: "content", code: "required", message: "content or content_b64 is required." }];
  }
  if ((await decoded()) === null) {
    return [{ field: "content_b64", code: "base64", message: "content_b64 is not padded base64." }];
  }
  return [];
}

const contentOf = ({ content = "", content_b64 }: Partial<Input>): Content =>
  content_b64 === undefined ? { text: content, encoding: "utf8" } : { text: content_b64, encoding: "base64" };
