/**
 * Files of a sandbox for the small set. Paths below /mnt/drive are the drive's, and need no guest; all others are read and written in
 * the guest.
 */
import { DRIVE_MOUNT, fsList, fsRead, fsWrite } from "../../../../shared/api/drive.ts";
import { sandboxExec } from "../../../../shared/api/executions.ts";
import { sandboxFileList } from "../../../../shared/api/sandbox-files.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { type Answer, answerOf, failed, stillUnderWay } from "../answer.ts";
import type { Arguments, Refused, Reply, ToolCall } from "../call.ts";
import type { Place } from "./place.ts";

export interface FilePart {
  kind: "part";
  bytes: Buffer;
  size_bytes: number;
  eof: boolean;
}

/** Where a path leads. */
export interface Files {
  read(path: string, offset: number, length: number): Promise<FilePart | Answer>;
  write(path: string, bytes: Buffer): Promise<Answer>;
  list(path: string, recursive: boolean): Promise<Answer>;
}

const MOST_LISTED = 200;

export function filesAt(call: ToolCall, place: Place, path: string): Files {
  return isOnDrive(path) ? onDrive(call, place) : inGuest(call, place);
}

const isOnDrive = (path: string) => path === DRIVE_MOUNT || path.startsWith(`${DRIVE_MOUNT}/`);

function onDrive(call: ToolCall, { room_id }: Place): Files {
  return {
    read: async (path, offset, length) => {
      const reply = await call.ask(fsRead, { room_id, path, offset, length });
      if (reply.kind !== "done") return notDone(call, reply);
      const { content, content_b64, size_bytes, eof } = reply.body;
      const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(String(content_b64), "base64");
      return { kind: "part", bytes, size_bytes: Number(size_bytes), eof: eof === true };
    },
    write: async (path, bytes) => {
      const reply = await call.ask(fsWrite, { room_id, path, content_b64: bytes.toString("base64") });
      return reply.kind === "done" ? written(path, bytes) : notDone(call, reply);
    },
    list: async (path, recursive) => {
      const reply = await call.ask(fsList, { room_id, path, recursive, limit: MOST_LISTED });
      if (reply.kind !== "done") return notDone(call, reply);
      return listing(path, reply.body, DRIVE_MOUNT);
    },
  };
}

/** `d 0 /root/src` */
function listing(path: string, { items, next_cursor }: Arguments, above: string): Answer {
  const lines = (items as Arguments[]).map(
    ({ type, size_bytes, path: at }) => `${type === "directory" ? "d" : "-"} ${size_bytes} ${above}${at}`,
  );
  const more = next_cursor ? [`… more than ${MOST_LISTED}`] : [];
  return { ok: true, result: { path, entries: lines.length }, text: [...lines, ...more].join("\n") || "(empty)" };
}

const written = (path: string, bytes: Buffer): Answer => ({
  ok: true,
  result: { path, size_bytes: bytes.length },
  text: `wrote ${bytes.length} bytes to ${path}`,
});

/** First the size, then the part. */
const READ = `if [ -d "$1" ]; then echo "is a directory" >&2; exit 21; fi
if [ ! -e "$1" ]; then echo "no such file" >&2; exit 2; fi
wc -c <"$1" | tr -d ' ' && tail -c +"$2" <"$1" | head -c "$3" | base64`;
const WRITE = `mkdir -p "$(dirname "$1")" && cat >"$1"`;
const EXIT_ABSENT = 2;
const EXIT_DIRECTORY = 21;

function inGuest(call: ToolCall, place: Place): Files {
  const sh = async (script: string, args: readonly string[], more: Arguments = {}) =>
    await call.ask(sandboxExec, {
      ...place,
      argv: ["/bin/sh", "-c", script, "sh", ...args],
      cwd: "/",
      max_output_bytes: 2 * 1024 * 1024,
      ...more,
    });
  return {
    read: async (path, offset, length) => {
      const reply = await sh(READ, [path, String(offset + 1), String(length)]);
      if (reply.kind !== "done") return notDone(call, reply);
      if (reply.body.exit_code !== 0) return complaint(call, path, reply.body);
      const [size = "0", ...lines] = String(reply.body.stdout).split("\n");
      const bytes = Buffer.from(lines.join(""), "base64");
      return { kind: "part", bytes, size_bytes: Number(size), eof: offset + bytes.length >= Number(size) };
    },
    write: async (path, bytes) => {
      const reply = await sh(WRITE, [path], { stdin_b64: bytes.toString("base64") });
      if (reply.kind !== "done") return notDone(call, reply);
      return reply.body.exit_code === 0 ? written(path, bytes) : complaint(call, path, reply.body);
    },
    list: async (path, recursive) => {
      const reply = await call.ask(sandboxFileList, { ...place, path, recursive, limit: MOST_LISTED });
      return reply.kind === "done" ? listing(path, reply.body, "") : notDone(call, reply);
    },
  };
}

function notDone(call: ToolCall, reply: Exclude<Reply, { kind: "done" }>): Answer {
  return reply.kind === "late" ? stillUnderWay(call) : answerOf(reply);
}

function complaint(call: ToolCall, path: string, { exit_code, stderr }: Arguments): Answer {
  const said = String(stderr ?? "")
    .trim()
    .slice(0, 200);
  const error =
    exit_code === EXIT_ABSENT
      ? new ServiceError("path_not_found", { detail: `There is no ${path} in the sandbox.` })
      : exit_code === EXIT_DIRECTORY
        ? new ServiceError("is_directory", {
            detail: `${path} is a directory.`,
            hint: "list_files lists it.",
          })
        : new ServiceError("invalid_path", { detail: `${path}: ${said}` });
  return failed(call.refuse(error) as Refused);
}
