/** Owns saving what a command printed: its streams as the files `stdout` and `stderr` of a directory. */
import { Beneath } from "../host/files/beneath.ts";
import { FILE_MODE } from "./entry.ts";
import { driveError } from "./errors.ts";
import { parsePath } from "./path.ts";
import { placeFile } from "./place-file.ts";
import type { Drive, DriveRoom } from "./verb.ts";

export async function saveStreams(
  drive: Drive,
  room: DriveRoom,
  path: string,
  streams: { stdout: Uint8Array; stderr: Uint8Array },
): Promise<void> {
  try {
    using root = Beneath.open(room.drive_directory);
    for (const name of ["stdout", "stderr"] as const) {
      await placeFile(
        drive,
        { room, root },
        { path: parsePath(`${path}/${name}`), mode: FILE_MODE, overwrite: true, fill: (write) => write(streams[name]) },
      );
    }
  } catch (error) {
    throw driveError(error);
  }
}
