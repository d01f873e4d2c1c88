/** The interface of a file tree that `roomd cp` reads or writes: the local file system, a room's drive, or a sandbox's file system. */
import type { Download } from "../../../../../sdk/typescript/src/client.ts";

export interface TreeEntry {
  /** Path relative to the listed directory, with `/` between names. */
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  /** Permission bits. */
  mode: number;
  target?: string | undefined;
}

/** Content of a file. A blob can be sent again after a lost connection. */
export interface Content extends Pick<Download, "stream" | "size" | "close"> {
  blob?: Blob;
}

export interface WriteOptions {
  mode?: number | undefined;
  owner?: string | undefined;
  /** false: fails if the file exists. */
  overwrite?: boolean | undefined;
  /** Whether a symbolic link at the path is followed: true only for the path that the user named, never below it. */
  followLink: boolean;
}

export interface Tree {
  isRemote: boolean;
  /** The path in the form in which the user writes it. */
  spell(path: string): string;
  join(directory: string, below: string): string;
  /** Follows links if the tree supports it; null if there is no such entry. */
  stat(path: string): Promise<Pick<TreeEntry, "type" | "mode"> | null>;
  /** All entries below a directory, each directory before its entries; links are not followed. */
  list(directory: string): AsyncIterable<TreeEntry>;
  open(path: string): Promise<Content>;
  /** Returns the file's size in bytes. */
  write(path: string, content: Content, options: WriteOptions): Promise<number>;
  mkdir(path: string, options: Omit<WriteOptions, "overwrite">): Promise<void>;
  /** Absent if the tree cannot make symbolic links. */
  link?(path: string, target: string): Promise<void>;
}

export const PERMISSIONS = 0o777;

export const modeText = (mode: number) => (mode & PERMISSIONS).toString(8).padStart(4, "0");
