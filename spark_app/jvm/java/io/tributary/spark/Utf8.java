package io.tributary.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Says whether bytes are text. Java does so by decoding them, which takes long where not all are ASCII. */
final class Utf8 {
    /** The first of them is the lowest of the number. */
    static final VarHandle EIGHT_BYTES = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    /** Of eight bytes; one that is ASCII has none. */
    static final long HIGHEST_BITS = 0x8080808080808080L;

    private Utf8() {}

    /** By the well-formed byte sequences of the Unicode Standard (15.0, table 3-7). */
    static boolean isWellFormed(byte[] bytes) {
        int at = 0;
        while (at < bytes.length) {
            if (at + Long.BYTES <= bytes.length && ((long) EIGHT_BYTES.get(bytes, at) & HIGHEST_BITS) == 0) {
                at += Long.BYTES;
            } else {
                int length = bytes[at] >= 0 ? 1 : sequenceLength(bytes, at);
                if (length == 0) {
                    return false;
                }
                at += length;
            }
        }
        return true;
    }

    /** Returns the length of the sequence that begins there and is not ASCII; 0 if it is not well-formed. */
    private static int sequenceLength(byte[] bytes, int at) {
        int lead = bytes[at] & 0xFF;
        int length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
        if (length == 0 || at + length > bytes.length) {
            return 0;
        }
        int second = bytes[at + 1] & 0xFF;
        int least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        int most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (second < least || second > most) {
            return 0;
        }
        for (int next = at + 2; next < at + length; next++) {
            if ((bytes[next] & 0xC0) != 0x80) {
                return 0;
            }
        }
        return length;
    }
}
