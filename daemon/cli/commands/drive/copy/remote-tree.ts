/** Trees of remote files: a room's drive, and a sandbox's file system. */
import * as drive from "../../../../../shared/api/drive.ts";
import * as files from "../../../../../shared/api/sandbox-files.ts";
import { CliError } from "../../../kit/cli-error.ts";
import { call, download } from "../../../kit/client.ts";
import { whole } from "../../../kit/save-answer.ts";
import { type Content, modeText, type Tree, type TreeEntry, type WriteOptions } from "./tree.ts";

export function driveTree(room_id: string): Tree {
  return remoteTree(room_id, {
    stat: (path) => call(drive.fsStat, { room_id, path }),
    list: (path, cursor) => call(drive.fsList, { room_id, path, recursive: true, cursor }),
    open: (path) => download(drive.fileGet, { room_id, path }),
    put: (path, body, options) => call(drive.filePut, { room_id, path, ...options }, { body }),
    mkdir: (path, options) => call(drive.fsMkdir, { room_id, path, ...options }),
  });
}

export function sandboxTree(room_id: string, sandbox: string): Tree {
  const name = { room_id, sandbox };
  return remoteTree(`${room_id}/${sandbox}`, {
    stat: (path) => call(files.sandboxFileStat, { ...name, path, follow: true }),
    list: (path, cursor) => call(files.sandboxFileList, { ...name, path, recursive: true, cursor }),
    open: (path) => download(files.sandboxFileGet, { ...name, path }),
    put: (path, body, options) => call(files.sandboxFilePut, { ...name, path, ...options }, { body }),
    mkdir: (path, options) => call(files.sandboxFileMkdir, { ...name, path, ...options }),
  });
}

interface Facts {
  type: TreeEntry["type"];
  mode: string;
}

interface ListedEntry extends Facts {
  path: string;
  path_b64?: string;
  target?: string;
}

type PutOptions = { mode?: string | undefined; owner?: string | undefined; overwrite?: boolean | undefined };

/** API calls that both kinds of tree support. */
interface Calls {
  stat(path: string): Promise<{ value: Facts }>;
  list(
    path: string,
    cursor: string | undefined,
  ): Promise<{ value: { path: string; items: ListedEntry[]; next_cursor: string | null } }>;
  open(path: string): Promise<Content>;
  put(
    path: string,
    body: Blob | AsyncIterable<Uint8Array>,
    options: PutOptions,
  ): Promise<{ value: { size_bytes: number } }>;
  mkdir(path: string, options: Omit<PutOptions, "overwrite">): Promise<unknown>;
}

function remoteTree(name: string, calls: Calls): Tree {
  return {
    isRemote: true,
    spell: (path) => `${name}:${path}`,
    join: (directory, below) => `${directory === "/" ? "" : directory}/${below}`,
    stat: async (path) => {
      try {
        const { value } = await calls.stat(path);
        return { type: value.type, mode: bits(value.mode) };
      } catch (error) {
        if (error instanceof CliError && error.complaint.code === "path_not_found") return null;
        throw error;
      }
    },
    list: async function* (directory) {
      let cursor: string | undefined;
      do {
        const { value } = await calls.list(directory, cursor);
        for (const each of value.items) yield entryOf(value.path, each);
        cursor = value.next_cursor ?? undefined;
      } while (cursor !== undefined);
    },
    open: calls.open,
    write: async (path, content, options) => {
      const body = content.blob ?? whole(content);
      const { value } = await calls.put(path, body, {
        ...sent(options),
        overwrite: options.overwrite === false ? false : undefined,
      });
      return value.size_bytes;
    },
    mkdir: async (path, options) => void (await calls.mkdir(path, sent(options))),
  };
}

/**
 * Converts a listed entry. Throws CliError for a path that is not below the listed directory: the sandbox's root user controls the answer.
 */
function entryOf(top: string, { path, path_b64, type, mode, target }: ListedEntry): TreeEntry {
  const prefix = top === "/" ? "/" : `${top}/`;
  const below = path.slice(prefix.length);
  const invalidName = process.platform === "win32" ? /^(|\.\.?)$|[\0\\:]/ : /^(|\.\.?)$|\0/;
  if (!path.startsWith(prefix) || below.split("/").some((name) => invalidName.test(name))) {
    throw new CliError(`The listing of ${top} has an entry that cannot be below it: ${path}`);
  }
  // A name that is not UTF-8 cannot be requested.
  return { path: below, type: path_b64 === undefined ? type : "other", mode: bits(mode), target };
}

function sent({ mode, owner }: Pick<WriteOptions, "mode" | "owner">) {
  return { mode: mode === undefined ? undefined : modeText(mode), owner };
}

const bits = (mode: string) => Number.parseInt(mode, 8);
