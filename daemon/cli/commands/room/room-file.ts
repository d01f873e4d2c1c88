/** `roomd room backup`, and the file form of `roomd room restore`: rooms as files of the caller's. */
import type { Command } from "commander";
import { roomBackup, roomFromBackup } from "../../../../shared/api/room-backups.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call, download } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { localFile } from "../../kit/local-file.ts";
import { bytesText, counted, type JsonOption, show, showValue, write } from "../../kit/output.ts";
import { type Progress, withProgress } from "../../kit/progress.ts";
import { saveAnswer, whole } from "../../kit/save-answer.ts";
import { stdinParts } from "../../kit/standard-input.ts";

/** Exceeds the length of the first line of any room backup. */
const MAX_LINE_BYTES = 256 * 1024;

export function backupRoomCommand(): Command {
  return command("backup <room>", {
    summary: "back a room up to a file, while it runs: its drive, messages, barriers, agents and checkpoints",
    examples: [
      "roomd room backup build-42 build-42.room",
      "roomd room backup build-42 > build-42.room",
      "roomd room backup build-42 - | gzip > build-42.room.gz",
    ],
    notes: [
      "Sandboxes, also those of checkpoints, snapshots and recordings are not in it. `roomd room restore FILE` creates a room from it.",
    ],
  })
    .argument("[file]", "output file; - is standard output", "-")
    .action(async (room_id: string, file: string, options: JsonOption) => {
      if (file === "-" && process.stdout.isTTY)
        throw new CliError("A room's file is binary: name a file, or redirect standard output.", EXIT.usage);
      const found = await withProgress(`copying room ${room_id}`, () => download(roomBackup, { room_id }));
      let first = "";
      const stream = peeked(found.stream, (line) => {
        first = line;
      });
      const size_bytes = await withProgress(`backing up room ${room_id}`, (progress) =>
        file === "-"
          ? sendOut({ ...found, stream }, progress, room_id)
          : saveAnswer({ ...found, stream }, file, (bytes) =>
              progress.say(`backing up room ${room_id}, ${bytesText(bytes)}`),
            ),
      );
      const { left_out } = aboutOf(first);
      const lines = [`backed up room ${room_id}, ${bytesText(size_bytes)}`, ...leftOutLines(left_out)];
      if (file === "-") process.stderr.write(`${lines.join("\n")}\n`);
      else await showValue({ room_id, local: file, size_bytes, left_out }, options, () => lines);
    });
}

type RoomDownload = Awaited<ReturnType<typeof download>>;

async function sendOut(found: RoomDownload, progress: Progress, roomId: string): Promise<number> {
  let size = 0;
  for await (const chunk of whole(found)) {
    await write(process.stdout, chunk);
    size += chunk.byteLength;
    progress.say(`backing up room ${roomId}, ${bytesText(size)}`);
  }
  return size;
}

interface FileOptions extends JsonOption {
  name: string | undefined;
  host: string | undefined;
}

/** Creates a room from a local backup file; `-` is standard input. Throws CliError. */
export async function restoreFile(file: string, { name, host, json }: FileOptions): Promise<void> {
  const source = file === "-" ? stdinParts() : (await localFile(file)).stream();
  const { line, stream } = await opened(source);
  const room_id = name ?? aboutOf(line).room_id;
  if (room_id === undefined) throw new CliError(`${file} is not a room's file.`, EXIT.usage);
  const reply = await withProgress(`creating room ${room_id}`, (progress) =>
    call(
      roomFromBackup,
      { room_id, host },
      { body: counting(stream, (bytes) => progress.say(`creating room ${room_id}, ${bytesText(bytes)}`)) },
    ),
  );
  await show(reply, json === undefined ? {} : { json }, ({ room, of_room, backed_up_at, left_out }) => [
    `room ${room.room_id} is ${room.state}, created from ${of_room} as of ${backed_up_at}`,
    ...leftOutLines(left_out),
  ]);
}

type LeftOut = Partial<Record<"sandboxes" | "snapshots" | "checkpoints" | "recordings", number>>;

function leftOutLines({ sandboxes = 0, snapshots = 0, checkpoints = 0, recordings = 0 }: LeftOut): string[] {
  const all = [
    sandboxes && counted(sandboxes, "sandbox", "sandboxes"),
    snapshots && counted(snapshots, "snapshot", "snapshots"),
    checkpoints && `the sandboxes of ${counted(checkpoints, "checkpoint", "checkpoints")}`,
    recordings && counted(recordings, "recording", "recordings"),
  ].filter((each) => each !== 0);
  return all.length === 0 ? [] : [`not in it: ${all.join(", ")}`];
}

/** Parses the first line; empty values for an invalid one. */
function aboutOf(line: string): { room_id?: string; left_out: LeftOut } {
  try {
    const { about } = JSON.parse(line);
    return { room_id: String(about.room_id), left_out: about.left_out ?? {} };
  } catch {
    return { left_out: {} };
  }
}

/** The first line, and a stream of the whole file including that line. */
async function opened(source: AsyncIterable<Uint8Array>): Promise<{ line: string; stream: AsyncIterable<Uint8Array> }> {
  const parts = source[Symbol.asyncIterator]();
  const held: Uint8Array[] = [];
  let text = "";
  while (!text.includes("\n") && text.length < MAX_LINE_BYTES) {
    const { done, value } = await parts.next();
    if (done) break;
    held.push(value);
    text += Buffer.from(value).toString("latin1");
  }
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield* held;
    for (let next = await parts.next(); !next.done; next = await parts.next()) yield next.value;
  }
  return { line: text.split("\n", 1)[0] ?? "", stream: stream() };
}

async function* peeked(source: AsyncIterable<Uint8Array>, onLine: (line: string) => void): AsyncGenerator<Uint8Array> {
  const { line, stream } = await opened(source);
  onLine(line);
  yield* stream;
}

async function* counting(
  source: AsyncIterable<Uint8Array>,
  onProgress: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of source) {
    yield part;
    bytes += part.byteLength;
    onProgress(bytes);
  }
}
