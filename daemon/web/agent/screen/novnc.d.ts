/** Declares what of noVNC is used here; it has no types of its own. Its events are those of its docs/API.md. */
declare module "@novnc/novnc" {
  /** What has these of a WebSocket will do. */
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
    /** Draws into `target`, as large as that is. The socket may still be opening. */
    constructor(target: HTMLElement, channel: WebSocket | RawChannel, options?: { shared?: boolean });
    viewOnly: boolean;
    scaleViewport: boolean;
    background: string;
    qualityLevel: number;
    /** While it is so, the screen is asked to be as large as `target` is; at once where it becomes so. */
    resizeSession: boolean;
    focus(): void;
    blur(): void;
    clipboardPasteFrom(text: string): void;
    disconnect(): void;
  }
}
