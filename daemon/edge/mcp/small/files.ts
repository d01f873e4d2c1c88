/**
 * Files of a sandbox for the small set. Paths below /mnt/drive are the drive's, and need no guest; all others are read and written in
 * the guest.
 */
import { DRIVE_MOUNT, fsList, fsRead, fsWrite } from "../../../../shared/api/drive.ts";
import { sandboxFileGet, sandboxFileList, sandboxFilePut } from "../../../../shared/api/sandbox-files.ts";
import { type Content, decodeContent } from "../../../core/call/content.ts";
import { loopTime, Pieces } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { answerOf, failed, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, Reply, ToolCall } from "../call.ts";
import type { SandboxAddress } from "./place.ts";

export interface FilePart {
  kind: "part";
  bytes: Buffer;
  size_bytes: number;
  eof: boolean;
}

/** File operations at the target of a path. */
export interface Files {
  read(path: string, offset: number, length: number): Promise<FilePart | ToolAnswer>;
  write(path: string, content: Content): Promise<ToolAnswer>;
  list(path: string, recursive: boolean): Promise<ToolAnswer>;
}

const MAX_LISTED = 200;
const NOT_BASE64 = new ServiceError("validation_failed", { detail: "content_b64 is not padded base64." });

export function filesAt(call: ToolCall, place: SandboxAddress, path: string): Files {
  return isOnDrive(path) ? onDrive(call, place) : inGuest(call, place);
}

const isOnDrive = (path: string) => path === DRIVE_MOUNT || path.startsWith(`${DRIVE_MOUNT}/`);

function onDrive(call: ToolCall, { room_id }: SandboxAddress): Files {
  return {
    read: async (path, offset, length) => {
      const reply = await call.ask(fsRead, { room_id, path, offset, length });
      if (reply.kind !== "done") return notDone(call, reply);
      const { content, content_b64, size_bytes, eof } = reply.body;
      const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(String(content_b64), "base64");
      return { kind: "part", bytes, size_bytes: Number(size_bytes), eof: eof === true };
    },
    write: async (path, { text, encoding }) => {
      const content = encoding === "utf8" ? { content: text } : { content_b64: text };
      const reply = await call.ask(fsWrite, { room_id, path, ...content });
      return reply.kind === "done" ? written(path, Number(reply.body.size_bytes)) : notDone(call, reply);
    },
    list: async (path, recursive) => {
      const reply = await call.ask(fsList, { room_id, path, recursive, limit: MAX_LISTED });
      if (reply.kind !== "done") return notDone(call, reply);
      return listing(path, reply.body, DRIVE_MOUNT);
    },
  };
}

/** `d 0 /root/src` */
function listing(path: string, { items, next_cursor }: Arguments, above: string): ToolAnswer {
  const lines = (items as Arguments[]).map(
    ({ type, size_bytes, path: at }) => `${type === "directory" ? "d" : "-"} ${size_bytes} ${above}${at}`,
  );
  const more = next_cursor ? [`… more than ${MAX_LISTED}`] : [];
  return { ok: true, result: { path, entries: lines.length }, text: [...lines, ...more].join("\n") || "(empty)" };
}

const written = (path: string, size_bytes: number): ToolAnswer => ({
  ok: true,
  result: { path, size_bytes },
  text: `wrote ${size_bytes} bytes to ${path}`,
});

function inGuest(call: ToolCall, place: SandboxAddress): Files {
  return {
    read: async (path, offset, length) => {
      const range = `bytes=${offset}-${offset + length - 1}`;
      const reply = await call.askFile(sandboxFileGet, { ...place, path: rest(path) }, { range });
      const end = endOf(reply, offset);
      if (end) return end;
      if (reply.kind !== "done" || !reply.file) return notDone(call, reply as NotDone);
      const { bytes, size_bytes } = reply.file;
      return { kind: "part", bytes, size_bytes, eof: offset + bytes.length >= size_bytes };
    },
    write: async (path, content) => {
      const bytes = await decodeContent(content, new Pieces(loopTime, loopTime.owner, "mcp"));
      if (!bytes) return failed(call.refuse(NOT_BASE64));
      const reply = await call.askFile(sandboxFilePut, { ...place, path: rest(path) }, { body: bytes });
      return reply.kind === "done" ? written(path, bytes.length) : notDone(call, reply);
    },
    list: async (path, recursive) => {
      const reply = await call.ask(sandboxFileList, { ...place, path, recursive, limit: MAX_LISTED });
      return reply.kind === "done" ? listing(path, reply.body, "") : notDone(call, reply);
    },
  };
}

/** A path as the rest of a URL, without its leading slash. */
const rest = (path: string) =>
  path
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .join("/");

/** An empty part if the offset is the end of the file. */
function endOf(reply: Reply, offset: number): FilePart | null {
  if (reply.kind !== "problem" || reply.problem.code !== "range_not_satisfiable") return null;
  const size_bytes = Number(reply.problem.details?.size_bytes);
  return size_bytes === offset ? { kind: "part", bytes: Buffer.alloc(0), size_bytes, eof: true } : null;
}

type NotDone = Exclude<Reply, { kind: "done" }>;

function notDone(call: ToolCall, reply: NotDone): ToolAnswer {
  return reply.kind === "late" ? stillUnderWay(call) : answerOf(reply);
}
