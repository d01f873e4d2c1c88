/** Interface of recordings: a screen over a period of time, to be played or downloaded as a film. */
import { Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { sandboxPath } from "./sandboxes.ts";

export const DEFAULT_RECORDING_SECONDS = 3600;
export const MAX_RECORDING_SECONDS = 4 * 3600;
/** Maximum size of one recording; the recording ends at it. */
export const MAX_RECORDING_BYTES = 256 * 1024 * 1024;
/** Kept in a room. */
export const MAX_RECORDINGS = 100;
/** Stored per organization, in all its rooms; a recording in progress counts with its maximum size. */
export const MAX_RECORDINGS_BYTES = 4 * 1024 * 1024 * 1024;
/** Maximum of screens of an organization that are recorded concurrently. */
export const MAX_RECORDERS_OF_ORG = 16;
/** Maximum frames per second of a recording and of a film. */
export const RECORDED_PER_SECOND = 10;
/** Media types of a recording: as stored, and as a film. */
export const RECORDING_TYPE = "application/vnd.roomd.recording";
export const FILM_TYPE = "video/mp4";
/** The template of the virtual machine that converts recordings to films. */
export const FILM_TEMPLATE = "film";

export const RECORDING_ENDS = [
  "stopped",
  "time_up",
  "too_large",
  "disk_full",
  "sandbox_stopped",
  "screen_lost",
  "service_restarted",
] as const;
export type RecordingEnd = (typeof RECORDING_ENDS)[number];

const recordingPath = fields({
  ...sandboxPath.properties,
  recording_id: Type.String({ pattern: "^[A-Za-z0-9_]{1,64}$" }),
});

export const recordingRecord = record("Recording", {
  recording_id: Type.String({ examples: ["rec_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"] }),
  room_id: Type.String(),
  agent_id: Type.String(),
  sandbox_id: Type.String(),
  state: oneOf(["recording", "ended"]),
  end_reason: nullable(oneOf(RECORDING_ENDS, { description: "Reason of its end; null while in progress." })),
  started_at: timestamp,
  ended_at: nullable(timestamp),
  duration_ms: Type.Integer({ description: "So far, while in progress." }),
  size_bytes: Type.Integer(),
  width: Type.Integer({ description: "Of the widest picture in it." }),
  height: Type.Integer(),
});
export type RecordingRecord = typeof recordingRecord.static;

const ERRORS = ["room_not_found", "sandbox_not_found"] as const;
const ONE_ERRORS = [...ERRORS, "recording_not_found"] as const;
const PATH = "/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings";
const common = { extension: "screen", access: "exec", query: NONE, body: null } as const;

export const recordingStart = operation({
  ...common,
  name: "recording_start",
  method: "POST",
  path: PATH,
  summary: "Start recording a sandbox's screen",
  description: `Records the screen, up to ${RECORDED_PER_SECOND} pictures a second and only changes, until it is stopped. It also ends at its time limit, at ${MAX_RECORDING_BYTES / 1024 ** 2} MiB, and with the sandbox or its pause: end_reason has the reason. A sandbox that is only recorded is idle. One recording of a screen at a time; a room keeps up to ${MAX_RECORDINGS} and an organization ${MAX_RECORDINGS_BYTES / 1024 ** 3} GiB, until they are deleted or their room is. Keyboard input, sound and clipboard are not recorded.`,
  params: sandboxPath,
  body: fields({
    max_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_RECORDING_SECONDS,
        description: `Time limit; ${DEFAULT_RECORDING_SECONDS} if absent.`,
      }),
    ),
  }),
  output: recordingRecord,
  outcomes: { created: 201 },
  location: `${PATH}/{recording_id}`,
  errors: [
    ...ERRORS,
    "invalid_state",
    "room_destroying",
    "already_exists",
    "guest_unreachable",
    "insufficient_capacity",
    "disk_full",
  ],
  audit: "screen.recording_started",
  example: { body: { max_seconds: 600 } },
});

export const recordingList = operation({
  ...common,
  name: "recording_list",
  method: "GET",
  path: PATH,
  summary: "List the recordings of a sandbox's screen",
  description: "Newest first. Those of a destroyed sandbox are found by its sandbox_id.",
  watched: true,
  params: sandboxPath,
  output: fields({ items: Type.Array(recordingRecord) }),
  outcomes: { ok: 200 },
  errors: [...ERRORS],
  audit: "screen.recordings_listed",
});

export const recordingGet = operation({
  ...common,
  name: "recording_get",
  method: "GET",
  path: `${PATH}/{recording_id}`,
  summary: "Get one recording's record",
  watched: true,
  params: recordingPath,
  output: recordingRecord,
  outcomes: { ok: 200 },
  errors: [...ONE_ERRORS],
  audit: "screen.recording_state_read",
});

export const recordingStop = operation({
  ...common,
  name: "recording_stop",
  method: "POST",
  path: `${PATH}/{recording_id}/stop`,
  summary: "Stop recording",
  description: "Answers once the recording is complete. An ended recording stays unchanged.",
  params: recordingPath,
  output: recordingRecord,
  outcomes: { ok: 200 },
  errors: [...ONE_ERRORS],
  onFullDisk: true,
  audit: "screen.recording_stopped",
});

export const recordingDelete = operation({
  ...common,
  name: "recording_delete",
  method: "DELETE",
  path: `${PATH}/{recording_id}`,
  summary: "Delete a recording",
  description: "Stops it first if it is in progress.",
  params: recordingPath,
  output: fields({ recording_id: Type.String(), state: oneOf(["deleted"]) }),
  outcomes: { ok: 200 },
  errors: [...ONE_ERRORS],
  audit: "screen.recording_deleted",
});

export const recordingData = operation({
  ...common,
  name: "recording_data",
  method: "GET",
  path: `${PATH}/{recording_id}/data`,
  summary: "Read a recording in its stored format",
  description:
    "Pieces, each with a header of eight bytes: milliseconds since its beginning and its length, both as four bytes, big endian. The first piece is the server's ServerInit of RFB 3.8, every other a whole FramebufferUpdate, in Raw or ZRLE.",
  watched: true,
  params: recordingPath,
  output: Type.Unknown(),
  outcomes: { ok: 200 },
  bytesOutput: [RECORDING_TYPE],
  errors: [...ONE_ERRORS],
  audit: "screen.recording_read",
});

export const recordingFilm = operation({
  ...common,
  name: "recording_film",
  method: "GET",
  path: `${PATH}/{recording_id}/film`,
  summary: "Export a recording as a video",
  description: `MP4 with H.264, of ${RECORDED_PER_SECOND} pictures a second, sent while it is made. A machine of the template ${FILM_TEMPLATE} makes it and is removed afterwards; the operator builds that with \`roomd template build ${FILM_TEMPLATE}\`. One video at a time is made on a host. A truncated answer is not a complete video.`,
  params: recordingPath,
  output: Type.Unknown(),
  outcomes: { ok: 200 },
  bytesOutput: [FILM_TYPE],
  errors: [...ONE_ERRORS, "invalid_state", "template_not_found", "insufficient_capacity"],
  audit: "screen.film_read",
});
