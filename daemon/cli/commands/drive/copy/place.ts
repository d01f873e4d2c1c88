/** Source and target arguments of `roomd cp`: ROOM/AGENT:PATH, ROOM:PATH, a local path, or - for standard input and output. */
import { InvalidArgumentError } from "commander";
import { LOCAL_TREE } from "./local-tree.ts";
import { driveTree, sandboxTree } from "./remote-tree.ts";
import type { Tree } from "./tree.ts";

export interface CopyPlace {
  /** null: standard input or output. */
  tree: Tree | null;
  path: string;
  /** The last name of the path; empty if the path ends in `.` or is the root: then only the directory's contents are copied. */
  name: string;
  /** Whether the argument ends with a slash. */
  isDirectory: boolean;
}

export function copyPlace(text: string): CopyPlace {
  if (text === "-") return { tree: null, path: text, name: "", isDirectory: false };
  const [, room_id, agent, path] = (!isDriveLetter(text) && /^([^:/.][^:/]*)(?:\/([^:/]+))?:(.*)$/s.exec(text)) || [];
  if (room_id === undefined || path === undefined) return placeOf(LOCAL_TREE, text, text);
  if (path === "") throw new InvalidArgumentError("A path must follow the colon, such as :/root/notes.txt.");
  if (agent === undefined) return placeOf(driveTree(room_id), path, cleaned(path));
  if (!path.startsWith("/")) throw new InvalidArgumentError(`Paths in a sandbox are absolute, such as /root/${path}.`);
  return placeOf(sandboxTree(room_id, agent), path, cleaned(path));
}

function placeOf(tree: Tree, text: string, path: string): CopyPlace {
  const parts = (process.platform === "win32" && !tree.isRemote ? text.replaceAll("\\", "/") : text).split("/");
  const isDirectory = parts.at(-1) === "";
  const last = parts.filter((part) => part !== "").at(-1) ?? "";
  return { tree, path, name: last === "." || last === ".." ? "" : last, isDirectory };
}

/** The path without empty components and `.`, which a URL does not preserve. */
const cleaned = (path: string) =>
  `/${path
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .join("/")}`;

const isDriveLetter = (text: string) => process.platform === "win32" && /^[A-Za-z]:[\\/]/.test(text);
