/** Checks a command's working directory and program without hanging on a dead drive. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Drive } from "../drive/drive.ts";

/** Whether `cwd` and the places where `name` is looked for can be read: those on the drive need it to answer. */
export async function canLook(drive: Drive, cwd: string, name: string, searchPath: string): Promise<boolean> {
  const places = [".", name, ...searchPath.split(":")].map((path) => resolve(cwd, path));
  return places.some((place) => drive.holds(place)) ? drive.answers() : true;
}

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
