/** Saves a command's output as it arrives: its streams as the files `stdout` and `stderr` of a directory. */
import { Beneath } from "../../../host/files/beneath.ts";
import type { DriveRoom } from "../deps.ts";
import { FILE_MODE } from "../entry.ts";
import { driveError } from "../errors.ts";
import { parsePath } from "../path.ts";
import type { Drive } from "../verb.ts";
import { placeFile } from "./place-file.ts";

export type Streams = Record<"stdout" | "stderr", AsyncIterable<Uint8Array>>;

/** Both files once both are complete; a stream that is not saved is cancelled. Throws as fs_write does. */
export async function saveStreams(drive: Drive, room: DriveRoom, path: string, streams: Streams) {
  const giveUp = (name: keyof Streams) => streams[name][Symbol.asyncIterator]().return?.();
  try {
    using root = Beneath.open(room.drive_directory);
    const place = { room, root, usage: drive.usage.of(room) };
    const save = (name: "stdout" | "stderr") =>
      placeFile(drive, place, {
        path: parsePath(`${path}/${name}`),
        mode: FILE_MODE,
        overwrite: true,
        // Its guest ends before its drive is released, and this stream with it.
        fill: async (write) => {
          for await (const bytes of streams[name]) await write(bytes);
        },
      }).finally(() => giveUp(name));
    const [stdout, stderr] = await Promise.allSettled([save("stdout"), save("stderr")]);
    if (stdout.status === "rejected") throw stdout.reason;
    if (stderr.status === "rejected") throw stderr.reason;
    return { stdout: stdout.value, stderr: stderr.value };
  } catch (error) {
    await Promise.all([giveUp("stdout"), giveUp("stderr")]);
    throw driveError(error);
  }
}
