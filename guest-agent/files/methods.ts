/** The file methods, one file each. A path on a drive with a dead virtiofsd is refused: it would block a thread forever. */
import type { FileRequest } from "../../shared/agent-protocol/files.ts";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import type { Drive } from "../drive/drive.ts";
import { makeDirectory, move, remove } from "./change.ts";
import { entryAt } from "./entry.ts";
import { FileRefusal, failStream } from "./file-error.ts";
import { listDirectory } from "./list.ts";
import { parsePath } from "./path.ts";
import { readFile } from "./read.ts";
import { Watches } from "./watches.ts";
import { writeFile } from "./write.ts";

type Handler = (stream: Stream, request: object) => Promise<void>;
type FileDrive = Pick<Drive, "holds" | "answers">;

const PATH_FIELDS = ["path", "from", "to"] as const;

export function fileMethods(drive: FileDrive): Record<FileRequest["method"], Handler> {
  const watches = new Watches();
  const isDriveItself = (path: string) =>
    drive.holds(path) && !drive.holds(path.slice(0, path.lastIndexOf("/")) || "/");
  const guarded =
    (handler: Handler): Handler =>
    async (stream, request) => {
      try {
        await requireDrive(drive, request);
        await handler(stream, request);
      } catch (error) {
        if (!failStream(stream, error)) throw error;
      }
    };
  return {
    file_stat: guarded(async (stream, request) => {
      const { path, follow } = request as Record<string, unknown>;
      stream.finish({ entry: await entryAt(parsePath(path), follow === true) });
    }),
    file_list: guarded(listDirectory),
    file_read: guarded(readFile),
    file_write: guarded(writeFile),
    file_mkdir: guarded(makeDirectory),
    file_move: guarded(move),
    file_remove: guarded((stream, request) => remove(stream, request, isDriveItself)),
    file_watch: guarded((stream, request) => watches.watch(stream, request)),
  };
}

async function requireDrive(drive: FileDrive, request: object): Promise<void> {
  const fields = request as Record<string, unknown>;
  const isOn = PATH_FIELDS.some((field) => typeof fields[field] === "string" && drive.holds(String(fields[field])));
  if (isOn && !(await drive.answers())) {
    throw new FileRefusal(StreamErrorCode.drive_unavailable, "the drive does not answer");
  }
}
