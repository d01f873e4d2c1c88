/**
 * Messages about files in the guest's own view of its file systems. They are part of the surface of the protocol, as messages.ts is. Older
 * agents without them answer `unknown_method`.
 *
 * A path is absolute. A failed system call ends the stream with `file_failed` and the name of its errno as the message.
 */

/** Maximum bytes of a path, with its terminating zero (PATH_MAX). */
export const MAX_FILE_PATH_BYTES = 4096;
/** Maximum bytes of one line of a list or a watch: two paths in base64 and as text, each character of which may take six bytes. */
export const MAX_FILE_LINE_BYTES = 96 * 1024;

/** Maximum bytes of a file in flight to the guest. */
export const FILE_WINDOW_BYTES = 1024 * 1024;
/** Maximum bytes of a file in flight to the host, which buffers them for each slow reader. */
export const FILE_READ_WINDOW_BYTES = 512 * 1024;

export interface FileEntry {
  /** U+FFFD replaces bytes that are not UTF-8. */
  path: string;
  /** The path's bytes, if they are not UTF-8. */
  path_b64?: string;
  type: "file" | "directory" | "symlink" | "other";
  size_bytes: number;
  /** Permission bits. */
  mode: number;
  uid: number;
  gid: number;
  modified_at_ms: number;
  /** Target of a symbolic link. */
  target?: string;
  /** Device and inode. */
  identity: string;
  /** Changes with each modification of the file. */
  version: string;
}

/** Ends with a FileAnswer. */
export interface FileStatRequest {
  method: "file_stat";
  path: string;
  /** Whether a symbolic link is followed. */
  follow: boolean;
}
export interface FileAnswer {
  entry: FileEntry;
  /** For a write or a new directory: whether the entry is new. */
  created?: boolean;
}

/**
 * A page of a directory, on the channel `output`: a FileEntry as JSON on each line, ordered by the bytes of the names, a directory before
 * its entries. Ends with a FileListEnd. A recursive list stays on the directory's own file system.
 */
export interface FileListRequest {
  method: "file_list";
  path: string;
  recursive: boolean;
  /** Base64 of the last path of the previous page, relative to `path`; null for the first page. */
  after_b64: string | null;
  limit: number;
}
export interface FileListEnd {
  more: boolean;
}

/** Opens a regular file. The agent sends FileOpened, the host FileTake; the bytes follow on the channel `stdout`. Ends with null. */
export interface FileReadRequest {
  method: "file_read";
  path: string;
}
export interface FileOpened {
  type: "opened";
  entry: FileEntry;
}
export interface FileTake {
  type: "take";
  offset: number;
  length: number;
  /** Bytes that the agent may have sent ahead, at most FILE_READ_WINDOW_BYTES; if absent, every channel's default (WINDOW_BYTES). */
  window_bytes?: number;
}

/**
 * Replaces a file as a whole with the bytes of the channel `stdin`, and creates its parent directories. The agent sends FileWritable once
 * it has checked the request. Ends with a FileAnswer after the end of the channel, once the file is on the disk.
 */
export interface FileWriteRequest {
  method: "file_write";
  path: string;
  /** Permission bits; null keeps the replaced file's, or is 0644 for a new file. */
  mode: number | null;
  /** User name or `uid:gid`; null keeps the replaced file's owner, or is the default user of commands for a new file. */
  owner: string | null;
  overwrite: boolean;
  /** `version` of the file that may be replaced; null: no file may exist; absent: any version. */
  expect?: string | null;
}
export interface FileWritable {
  type: "writable";
  /**
   * Bytes of the channel that the host may have sent ahead, at most FILE_WINDOW_BYTES; if absent, every channel's default (WINDOW_BYTES).
   */
  window_bytes?: number;
}

/** Makes a directory and its parents; an existing one stays as it is. Ends with a FileAnswer. */
export interface FileMkdirRequest {
  method: "file_mkdir";
  path: string;
  mode: number | null;
  owner: string | null;
}

/** Renames an entry of any type; between file systems, the agent copies and removes it. Ends with a FileAnswer. */
export interface FileMoveRequest {
  method: "file_move";
  from: string;
  to: string;
  overwrite: boolean;
}

/** Ends with null. */
export interface FileRemoveRequest {
  method: "file_remove";
  path: string;
  recursive: boolean;
}

/**
 * Changes below a directory, or of a file: FileWatching is sent first, then a FileChange as JSON on each line of the channel `output`. The
 * agent keeps a watch, and its latest changes, for WATCH_KEPT_MS after its stream has ended.
 */
export interface FileWatchRequest {
  method: "file_watch";
  path: string;
  recursive: boolean;
  /** A watch to resume; null starts a new one. */
  watch_id: string | null;
  /** `seq` of the last change that the host has received. */
  after: number;
}
export interface FileWatching {
  type: "watching";
  watch_id: string;
}
export interface FileChange {
  seq: number;
  /** `overflow`: changes were lost, and the directory has to be listed again. */
  type: "created" | "modified" | "deleted" | "moved" | "overflow";
  path: string;
  path_b64?: string;
  /** For `moved`: the former path. */
  from?: string;
  is_directory: boolean;
}

export const WATCH_KEPT_MS = 60_000;

export type FileRequest =
  | FileStatRequest
  | FileListRequest
  | FileReadRequest
  | FileWriteRequest
  | FileMkdirRequest
  | FileMoveRequest
  | FileRemoveRequest
  | FileWatchRequest;
