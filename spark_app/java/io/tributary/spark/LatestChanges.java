package io.tributary.spark;

import java.util.Arrays;
import java.util.Iterator;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A change of each key.
 *
 * <p>A map of Java's looks for an entry, its key and the key's bytes, each in another place of the memory; a tenth of
 * the time of decoding was spent with that. Here hashes lie beside each other.
 */
final class LatestChanges {
    private static final int SEED = 42;
    private static final int FIRST_SIZE = 1 << 10;

    private final ChangeColumns columns;
    private final UnsafeRow earlier;
    private final UnsafeRow other;
    private long[] hashes = new long[FIRST_SIZE];
    private byte[][] changes = new byte[FIRST_SIZE][];
    private int keys;
    private long bytes;

    LatestChanges(ChangeColumns columns, int fields) {
        this.columns = columns;
        this.earlier = new UnsafeRow(fields);
        this.other = new UnsafeRow(fields);
    }

    /** Of all changes that are held. */
    long bytes() {
        return bytes;
    }

    /** Holds the change in place of that of its key, which it returns, good until the next is put; null without one. */
    UnsafeRow put(UnsafeRow change) {
        UTF8String key = columns.key(change);
        long hash = XXH64.hashUTF8String(key, SEED);
        int place = placeOf(hash, key);
        byte[] before = changes[place];
        hashes[place] = hash;
        // Bytes of its own: those of the row may be the buffer of the next one, too.
        changes[place] = change.copy().getBytes();
        bytes += changes[place].length;
        if (before != null) {
            bytes -= before.length;
            earlier.pointTo(before, before.length);
            return earlier;
        }
        if (++keys > changes.length / 2) {
            grow();
        }
        return null;
    }

    /** All changes, of which none is held any more. One is good until the next is asked for. */
    Iterator<UnsafeRow> takeAll() {
        byte[][] taken = changes;
        hashes = new long[FIRST_SIZE];
        changes = new byte[FIRST_SIZE][];
        keys = 0;
        bytes = 0;
        UnsafeRow row = new UnsafeRow(other.numFields());
        return Arrays.stream(taken)
                .filter(change -> change != null)
                .map(change -> {
                    row.pointTo(change, change.length);
                    return row;
                })
                .iterator();
    }

    private int placeOf(long hash, UTF8String key) {
        int place = (int) hash & (changes.length - 1);
        while (changes[place] != null && !(hashes[place] == hash && keyAt(place).equals(key))) {
            place = (place + 1) & (changes.length - 1);
        }
        return place;
    }

    private UTF8String keyAt(int place) {
        other.pointTo(changes[place], changes[place].length);
        return columns.key(other);
    }

    private void grow() {
        long[] hashesBefore = hashes;
        byte[][] changesBefore = changes;
        hashes = new long[2 * hashesBefore.length];
        changes = new byte[2 * changesBefore.length][];
        IntStream.range(0, changesBefore.length)
                .filter(place -> changesBefore[place] != null)
                .forEach(place -> {
                    int free = (int) hashesBefore[place] & (changes.length - 1);
                    while (changes[free] != null) {
                        free = (free + 1) & (changes.length - 1);
                    }
                    hashes[free] = hashesBefore[place];
                    changes[free] = changesBefore[place];
                });
    }
}
