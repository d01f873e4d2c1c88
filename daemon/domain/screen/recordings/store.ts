/**
 * Files of recordings, in the room's directory, so that they move with the drive. Each recording has a metadata file, written when it
 * starts and when it has ended; if the daemon's end cut it off, the rest is derived from its data file.
 */
import { openSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { RecordingEnd } from "../../../../shared/api/recordings.ts";
import { errnoOf } from "../../../core/service-error.ts";
import { readFacts } from "../../../host/files/facts.ts";
import { OpenFile } from "../../../host/files/open-file.ts";

export interface StoredRecording {
  recording_id: string;
  agent_id: string;
  sandbox_id: string;
  started_at: string;
  width: number;
  height: number;
  /** Null while it is in progress, and if it was cut off. */
  end: { reason: RecordingEnd; at: string; duration_ms: number } | null;
}

export interface FoundRecording extends StoredRecording {
  size_bytes: number;
  /** When something was added last. */
  changed_at: string;
}

const NAME = /^(rec_[0-9A-HJKMNP-TV-Z]{26})\.json$/;

const dataFile = (directory: string, recordingId: string) => join(directory, `${recordingId}.rfb`);
const knownFile = (directory: string, recordingId: string) => join(directory, `${recordingId}.json`);

/** Creates a data file and its metadata. */
export async function beginFile(directory: string, kept: StoredRecording): Promise<FileHandle> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const data = await open(dataFile(directory, kept.recording_id), "wx", 0o600);
  try {
    await writeKept(directory, kept);
  } catch (error) {
    await data.close();
    await removeFiles(directory, kept.recording_id);
    throw error;
  }
  return data;
}

/** Replaces the record atomically, after its new content is flushed to disk. */
export async function writeKept(directory: string, kept: StoredRecording): Promise<void> {
  const file = knownFile(directory, kept.recording_id);
  const unfinished = `${file}.new`;
  const opened = await open(unfinished, "w", 0o600);
  try {
    await opened.writeFile(JSON.stringify(kept));
    await opened.sync();
  } finally {
    await opened.close();
  }
  await rename(unfinished, file);
}

/** All recordings of a room, the newest first. */
export async function listFiles(directory: string): Promise<FoundRecording[]> {
  const names = await unlessMissing(readdir(directory), []);
  const ids = names.flatMap((name) => NAME.exec(name)?.[1] ?? []);
  const found = await Promise.all(ids.map((id) => findFile(directory, id)));
  return found.filter((each) => each !== null).sort((one, other) => (one.recording_id < other.recording_id ? 1 : -1));
}

/** Null if absent. */
export async function findFile(directory: string, recordingId: string): Promise<FoundRecording | null> {
  const read = async () => {
    const kept = JSON.parse(await readFile(knownFile(directory, recordingId), "utf8")) as StoredRecording;
    const { size, mtime } = await stat(dataFile(directory, recordingId));
    return { ...kept, size_bytes: size, changed_at: mtime.toISOString() };
  };
  return await unlessMissing(read(), null);
}

/** Throws ENOENT if absent. */
export function openFile(directory: string, recordingId: string): OpenFile {
  const descriptor = openSync(dataFile(directory, recordingId), "r");
  return new OpenFile(descriptor, readFacts(descriptor), -1);
}

export async function removeFiles(directory: string, recordingId: string): Promise<void> {
  const file = knownFile(directory, recordingId);
  for (const each of [file, `${file}.new`, dataFile(directory, recordingId)]) await rm(each, { force: true });
}

/** The room's directory may be removed at every moment. */
async function unlessMissing<T>(work: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return otherwise;
    throw error;
  }
}
