/** Declares the parts of noVNC that are used here; it has no types. Its events are documented in its docs/API.md. */
declare module "@novnc/novnc" {
  /** The subset of a WebSocket that is required. */
  interface RawChannel {
    readonly protocol: string;
    binaryType: BinaryType;
    readonly readyState: string;
    onopen: (() => void) | null;
    onmessage: ((event: { data: ArrayBuffer }) => void) | null;
    onclose: ((event: { code: number; reason: string }) => void) | null;
    onerror: (() => void) | null;
    send(bytes: Uint8Array): void;
    close(): void;
  }
  export default class RFB extends EventTarget {
    /** Draws into `target`, at the size of that element. The socket may still be opening. */
    constructor(target: HTMLElement, channel: WebSocket | RawChannel, options?: { shared?: boolean });
    viewOnly: boolean;
    scaleViewport: boolean;
    background: string;
    qualityLevel: number;
    /** While set, noVNC requests the size of `target` for the screen; setting it sends a request immediately. */
    resizeSession: boolean;
    focus(): void;
    blur(): void;
    clipboardPasteFrom(text: string): void;
    disconnect(): void;
  }
}
