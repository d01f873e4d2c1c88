/** The recordings of a screen: their list, and the player of one. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { RecordingEnd, RecordingRecord, recordingList } from "../../../../shared/api/recordings.ts";
import { Line, Shown, State, Trouble } from "../../components/parts.tsx";
import { ACTIONS, Table } from "../../components/table.tsx";
import { Clock, clockText, sizeText, spanText } from "../../components/text.tsx";
import { ask, get, part, Refused } from "../../data/api.ts";
import { useLoaded } from "../../data/resource.ts";
import { type Played, type Player, playerOf } from "./player.ts";

const WHY: Record<RecordingEnd, string> = {
  stopped: "stopped",
  time_up: "its time limit was reached",
  too_large: "its size limit was reached",
  disk_full: "the host's disk was full",
  sandbox_stopped: "the sandbox was paused or ended",
  screen_lost: "the screen was lost",
  service_restarted: "the service was restarted",
};

/** The recording that the address names, to be played immediately. */
const requestedRecording = () => new URLSearchParams(location.search).get("recording");

interface Props {
  path: string;
  room: string;
  agent: string;
  /** Whether the sandbox exists, so that its screen can be recorded. */
  isThere: boolean;
}

export function Recordings({ path, room, agent, isThere }: Props) {
  const found = useLoaded(
    `recordings ${path}`,
    (signal) => get<typeof recordingList>(`${path}/recordings`, {}, signal),
    ({ event }) => event.startsWith("screen.recording_"),
  );
  const chosen = useSignal<string | null>(requestedRecording());
  return (
    <>
      <h2>Recordings</h2>
      <Shown of={found}>
        {({ items }) => {
          const one = items.find(({ recording_id }) => recording_id === chosen.value);
          const isGoingOn = items.some(({ state }) => state === "recording");
          return (
            <>
              {one && one.state === "ended" ? <Play key={one.recording_id} path={path} recording={one} /> : null}
              {items.length > 0 ? (
                <RecordingTable
                  items={items}
                  chosen={chosen.value}
                  choose={(id) => {
                    chosen.value = id;
                  }}
                />
              ) : (
                <p class="muted">Nothing was recorded of this screen.{isThere ? " To begin:" : ""}</p>
              )}
              {isThere ? <Line words={["recording", isGoingOn ? "stop" : "start", room, agent]} /> : null}
            </>
          );
        }}
      </Shown>
    </>
  );
}

function RecordingTable({
  items,
  chosen,
  choose,
}: {
  items: readonly RecordingRecord[];
  chosen: string | null;
  choose(id: string): void;
}) {
  return (
    <Table
      classes={{ Length: "num", Size: "num" }}
      rows={items.map(({ recording_id, started_at, duration_ms, size_bytes, end_reason }) => ({
        key: recording_id,
        "aria-current": chosen === recording_id ? "true" : undefined,
        cells: {
          Begun: <Clock at={started_at} />,
          Length: spanText(duration_ms),
          Size: sizeText(size_bytes),
          Ended: end_reason === null ? <State look="live">recording</State> : WHY[end_reason],
          [ACTIONS]:
            end_reason === null ? null : (
              <button
                type="button"
                class="button"
                aria-label={`Play the recording of ${clockText(started_at)}`}
                onClick={() => choose(recording_id)}
              >
                Play
              </button>
            ),
        },
      }))}
    />
  );
}

function Play({ path, recording }: { path: string; recording: RecordingRecord }) {
  const { recording_id, duration_ms, size_bytes, width, height } = recording;
  const box = useRef<HTMLDivElement>(null);
  const player = useRef<Player | null>(null);
  const played = useSignal<Played>({ atMs: 0, isPlaying: false, isBroken: false });
  /** Target of a seek in progress. */
  const moved = useSignal<number | null>(null);
  const isLoaded = useSignal(false);
  const failed = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  useEffect(() => {
    const { current } = box;
    if (!current) return;
    const left = new AbortController();
    const load = async () => {
      const response = await ask(`${path}/recordings/${part(recording_id)}/data`, {}, left.signal);
      const data = await response.arrayBuffer();
      if (left.signal.aborted) return;
      player.current = await playerOf(data, duration_ms, current, played, left.signal);
      isLoaded.value = true;
      player.current.play();
    };
    load().catch((error: unknown) => {
      if (left.signal.aborted) return;
      if (error instanceof Refused) problem.value = error.problem;
      else failed.value = true;
    });
    return () => left.abort();
  }, []);
  const { isPlaying, isBroken } = played.value;
  const atMs = moved.value ?? played.value.atMs;
  return (
    <section aria-label="A recording">
      {problem.value ? <Trouble problem={problem.value} /> : null}
      {failed.value ? <p class="warning">The recording could not be loaded. Reload the page.</p> : null}
      {isBroken ? (
        <p class="warning">The recording is corrupt from this point on and cannot be played further.</p>
      ) : null}
      <div
        class="screen-live played"
        role="img"
        aria-label="Recorded screen"
        style={{ aspectRatio: `${width} / ${height}` }}
        ref={box}
      />
      <p class="row player">
        <button
          type="button"
          class="button"
          disabled={!isLoaded.value}
          onClick={() => (isPlaying ? player.current?.pause() : player.current?.play())}
        >
          {isPlaying ? "Pause" : "Play"}
        </button>
        <input
          type="range"
          aria-label="Position"
          aria-valuetext={`${spanText(atMs)} of ${spanText(duration_ms)}`}
          min={0}
          max={duration_ms}
          step={100}
          value={atMs}
          onInput={({ currentTarget }) => {
            moved.value = Number(currentTarget.value);
          }}
          onChange={({ currentTarget }) => {
            moved.value = null;
            player.current?.seek(Number(currentTarget.value));
          }}
        />
        <span class="muted num">
          {isLoaded.value || failed.value
            ? `${clock(atMs)} / ${clock(duration_ms)}`
            : `loading ${sizeText(size_bytes)}`}
        </span>
      </p>
    </section>
  );
}

/** 75,000 → 1:15 */
function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
